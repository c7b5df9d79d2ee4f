"""The load process as a whole, against the emulator and its truth."""

import os
import re
import time
from pathlib import Path

import pytest

from harness.load.plan import PlannedRequest
from tests.emulate import free_port, load, request_body, run_load, running_emulator

COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"
NOISE_NS = 2_000_000  # a core that others use too; `make bench` states the real error


def test_recorded_times_and_counts_are_the_emulators(tmp_path: Path) -> None:
    bodies = [request_body(max_tokens=12)] * 24
    with running_emulator(ttft_ms=20, gap_ms=10, phase_ms=10, tokens_per_chunk=3) as url:
        run = load(tmp_path, url + COMPLETIONS, bodies, warmup=4, in_flight=8)
    assert sorted(run.parsed) == list(range(1, 25))
    errors_ns = []
    for number, got in run.parsed.items():
        assert got.error is None
        assert (got.prompt_tokens, got.cached_tokens, got.output_tokens) == (3, 0, 12)
        assert (got.chunk_tokens, got.client_output_tokens) == ([3, 3, 3, 3], 12)
        assert got.output_text == " token" * 12
        truth = [int(t) for t in re.findall(rb'"emulator_ns":(\d+)', run.raw[number].data)]
        assert got.sent_ns is not None and got.unstamped_reads == 0
        arrivals = [got.sent_ns + offset for offset in got.chunk_offset_ns]
        assert (arrivals[0], arrivals[-1]) == (got.first_token_ns, got.last_token_ns)
        errors_ns += [a - t for a, t in zip(arrivals, truth, strict=True)]
    assert len(errors_ns) == 24 * 4
    assert min(errors_ns) >= 0
    assert sorted(errors_ns)[len(errors_ns) * 9 // 10] < NOISE_NS


def test_warmup_ends_before_the_measured_phase_and_slots_are_closed_loops(tmp_path: Path) -> None:
    with running_emulator(ttft_ms=5, gap_ms=1) as url:
        run = load(tmp_path, url + COMPLETIONS, [request_body()] * 12, warmup=3, in_flight=3)
    measured_ns = run.summary["measured_ns"]
    warmup = [got for got in run.parsed.values() if got.phase == "warmup"]
    measured = [got for got in run.parsed.values() if got.phase == "measured"]
    assert [len(warmup), len(measured), run.summary["requests"]] == [3, 9, 9]
    assert run.summary["started_ns"] < measured_ns < run.summary["ended_ns"]
    assert max(got.ended_ns for got in warmup) <= measured_ns
    assert min(got.sent_ns or 0 for got in measured) >= measured_ns
    for slot in range(3):
        free_ns = measured_ns
        for number in sorted(n for n, got in run.parsed.items() if got in measured):
            if run.raw[number].slot == slot:
                assert run.raw[number].scheduled_ns == free_ns
                free_ns = run.raw[number].ended_ns
    assert run.summary["minimums_met"] is True
    assert 0 <= run.summary["schedule_lag_p50_ns"] <= run.summary["schedule_lag_max_ns"]


def test_a_cell_lasts_until_both_minimums_are_met(tmp_path: Path) -> None:
    with running_emulator(ttft_ms=2, gap_ms=1) as url:
        bodies = [request_body()] * 400
        long = load(tmp_path, url + COMPLETIONS, bodies, min_requests=1, min_duration_s=0.3)
        many = load(tmp_path, url + COMPLETIONS, bodies, min_requests=20)
        few = load(tmp_path, url + COMPLETIONS, bodies[:4], min_requests=20)
    assert long.summary["ended_ns"] - long.summary["measured_ns"] >= 300_000_000
    assert 2 < len(long.parsed) < 400
    assert len(many.parsed) in (20, 21)  # what is in flight at the end is finished
    assert len(few.parsed) == 4
    assert few.summary["minimums_met"] is False
    assert all(got.error is None for got in {**long.parsed, **many.parsed}.values())


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("empty", "empty stream"),
        ("http_429", 'HTTP 429: {"error": {"message": "emulated fault 429", "code": 429}}'),
        ("http_500", 'HTTP 500: {"error": {"message": "emulated fault 500", "code": 500}}'),
        ("half_json", 'bad JSON in stream: {"id":'),
        ("error_event", 'server error in stream: {"message": "out of memory", "code": 500}'),
        ("close", "stream cut"),
        ("no_usage", "no usage"),
        ("no_finish", "no finish reason"),
        ("slow", "timeout"),
    ],
)
def test_a_fault_has_its_name_and_the_others_are_kept(
    tmp_path: Path, fault: str, error: str
) -> None:
    with running_emulator(ttft_ms=5, gap_ms=1, fault=fault, fault_every=3) as url:
        run = load(tmp_path, url + CHAT, [_chat()] * 7, in_flight=1, timeout_s=0.5)
    errors = {number: got.error for number, got in run.parsed.items() if got.error}
    assert list(errors) == [3, 6]
    assert all(text.startswith(error) for text in errors.values())
    whole = [got for got in run.parsed.values() if not got.error]
    assert [(got.output_tokens, got.client_output_tokens) for got in whole] == [(4, 4)] * 5


def test_shapes_that_are_no_failures(tmp_path: Path) -> None:
    wanted = {
        "two_events": (4, [1, 1, 1, 1], [True, False, True]),
        "split_char": (4, [1, 1, 1, 1], [False, False, False]),
        "short": (2, [1, 1], [False]),
        "wrong_prompt": (4, [1, 1, 1, 1], [False, False, False]),
    }
    for fault, (tokens, chunk_tokens, shared) in wanted.items():
        with running_emulator(ttft_ms=5, gap_ms=40, fault=fault) as url:
            got = load(tmp_path, url + CHAT, [_chat()], in_flight=1).parsed[1]
        assert got.error is None
        assert (got.output_tokens, got.chunk_tokens) == (tokens, chunk_tokens)
        assert got.chunk_shared[: len(shared)] == shared
        assert got.prompt_tokens == (10 if fault == "wrong_prompt" else 3)
        assert got.output_text == (" piña" if fault == "split_char" else " token") * tokens


def test_a_role_chunk_is_no_first_token(tmp_path: Path) -> None:
    with running_emulator(ttft_ms=80, gap_ms=1, fault="role_delay") as url:
        got = load(tmp_path, url + CHAT, [_chat()]).parsed[1]
    assert got.first_byte_ns and got.first_token_ns and got.sent_ns
    assert got.first_token_ns - got.sent_ns > 70_000_000
    assert got.first_byte_ns - got.sent_ns < 60_000_000


def test_an_engine_that_dies_leaves_what_was_finished(tmp_path: Path) -> None:
    with running_emulator(ttft_ms=5, gap_ms=1, die_after=4) as url:
        run = load(tmp_path, url + COMPLETIONS, [request_body()] * 6, in_flight=1)
    errors = [run.parsed[number].error for number in range(1, 7)]
    assert errors[:3] == [None, None, None]
    assert set(errors[3:]) <= {"connection refused", "connection reset", "connection closed"}
    assert run.summary["requests"] == 6


def test_nobody_listens(tmp_path: Path) -> None:
    run = load(tmp_path, f"http://127.0.0.1:{free_port()}{COMPLETIONS}", [request_body()] * 2)
    assert [got.error for got in run.parsed.values()] == ["connection refused"] * 2
    assert [got.sent_ns for got in run.parsed.values()] == [None, None]
    assert run.summary["schedule_lag_p50_ns"] is None


def test_due_times_are_absolute_deadlines(tmp_path: Path) -> None:
    due_ns = [0, 60_000_000, 120_000_000, 120_000_000]
    requests = tuple(
        PlannedRequest(number, "measured", request_body(), due)
        for number, due in enumerate(due_ns, start=1)
    )
    with running_emulator(ttft_ms=90, gap_ms=1) as url:
        run = load(tmp_path, url + COMPLETIONS, [], requests=requests, in_flight=4, min_requests=4)
    measured_ns = run.summary["measured_ns"]
    for number, due in enumerate(due_ns, start=1):
        got = run.parsed[number]
        assert got.scheduled_ns == measured_ns + due
        assert got.sent_ns is not None
        assert 0 <= got.sent_ns - got.scheduled_ns < 50_000_000


def test_a_slot_that_is_late_shows_it(tmp_path: Path) -> None:
    requests = [PlannedRequest(number, "measured", request_body(), due_ns=0) for number in (1, 2)]
    with running_emulator(ttft_ms=60, gap_ms=1) as url:
        run = load(tmp_path, url + COMPLETIONS, [], requests=requests, in_flight=1)
    first, second = run.parsed[1], run.parsed[2]
    assert first.scheduled_ns == second.scheduled_ns == run.summary["measured_ns"]
    assert second.sent_ns is not None and first.last_token_ns is not None
    assert second.sent_ns >= first.last_token_ns >= second.scheduled_ns + 60_000_000
    assert run.summary["schedule_lag_max_ns"] == second.sent_ns - second.scheduled_ns
    assert run.summary["minimums_met"] is True


def test_the_key_is_sent_and_is_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with running_emulator(ttft_ms=1, gap_ms=1) as url:
        process, _ = run_load(tmp_path, url + COMPLETIONS, [request_body()])
    assert process.returncode == 0
    written = process.stdout + process.stderr
    written += "".join(p.read_bytes().decode("latin-1") for p in tmp_path.iterdir())
    assert "sk-very-secret" not in written


def test_a_full_disk_is_named_and_the_process_ends(tmp_path: Path) -> None:
    os.symlink("/dev/full", tmp_path / "spool")
    with running_emulator(ttft_ms=1, gap_ms=1) as url:
        before = time.monotonic()
        process, plan = run_load(tmp_path, url + COMPLETIONS, [request_body()] * 3)
    assert time.monotonic() - before < 20
    assert process.returncode == 1
    assert "No space left on device" in process.stderr and plan.spool_path in process.stderr
    assert "Traceback" not in process.stderr


def _chat() -> str:
    return request_body(prompt=None, messages=[{"role": "user", "content": "one two three"}])
