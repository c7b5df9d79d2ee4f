"""Each reason against a cell is found, named, and says how much. Rows are hand-made integers."""

from typing import Any

import pytest

from harness.recording.store import Recording
from harness.recording.verdict import judge, pronounce
from tests.recording.conftest import MS, cell, request

SECOND = 1_000 * MS


def run(**changes: Any) -> dict[str, Any]:
    return {
        "run_id": 1,
        "session_id": 1,
        "engine": "emulator",
        "variant": "emulator",
        "model_id": "emulator",
        "argv": [],
        "env": {},
        "started_ns": 0,
    } | changes


def put(recording: Recording, **tables: list[dict[str, Any]]) -> None:
    with recording.transaction():
        for table, rows in tables.items():
            recording.insert(table, rows)


def reasons(recording: Recording, requests: list[dict[str, Any]], **changes: Any) -> list[str]:
    """Of one cell with these requests."""
    put(recording, engine_run=[run()], cell=[cell(1, **changes)], request=requests)
    return judge(recording.con, 1)


def sent_at(times_ms: list[float], late_ms: float = 0, **changes: Any) -> list[dict[str, Any]]:
    """Requests due at these times, each sent `late_ms` after, its token 20 ms after that."""
    made = []
    for number, at in enumerate(times_ms, start=1):
        due, sent = round(at * MS), round((at + late_ms) * MS)
        times = {"scheduled_ns": due, "sent_ns": sent, "first_token_ns": sent + 20 * MS}
        end = {"last_token_ns": sent + 60 * MS, "ended_ns": sent + 60 * MS}
        made.append(request(1, number, **(times | end | changes)))
    return made


OPEN = {"load": "poisson", "in_flight": None, "rate_per_s": 10.0}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"error": "no usage"}, "errors: 1 of 2 failed, first: no usage"),
        ({"prompt_tokens": 9}, "prompt_length: 1 of 2 had 9 prompt tokens, not 8"),
        ({"prompt_tokens": None}, "prompt_length: 1 of 2 had 0 prompt tokens, not 8"),
        ({"output_tokens": 3}, "output_length: 1 of 2 had 3 output tokens, not 4"),
        ({"asked_output_tokens": 5}, "output_length: 1 of 2 had 4 output tokens, not 5"),
        ({"cached_tokens": 6}, "warm_cache: 1 of 2 prompts hit the cache, up to 6 tokens"),
        ({"cached_tokens": 2}, None),
        ({"cached_tokens": None}, None),
        ({"chunk_shared": [True] * 4 + [False] * 96}, None),
        ({"chunk_shared": [False] * 99 + [True] * 1}, None),
        (
            {"chunk_shared": [True] * 5 + [False] * 95},
            "shared_reads: 5 of 101 chunks were read together with a later one",
        ),
    ],
)
def test_what_one_request_can_be_against(
    recording: Recording, changes: dict[str, Any], reason: str | None
) -> None:
    found = reasons(recording, [request(1, 1), request(1, 2, **changes)])
    assert found == ([] if reason is None else [reason])


@pytest.mark.parametrize(("lag_ms", "sound"), [(0.9, True), (1.1, False)])
def test_chunks_that_share_a_read_count_where_the_client_was_late(
    recording: Recording, lag_ms: float, sound: bool
) -> None:
    client = {"user_lag_p99_ns": lag_ms * MS}
    shared = request(1, 1, chunk_shared=[True] * 5 + [False] * 5)
    assert (reasons(recording, [shared], client=client) == []) == sound


def test_warm_up_is_not_judged(recording: Recording) -> None:
    spoilt = request(1, 2, phase="warmup", error="timeout", prompt_tokens=1)
    assert reasons(recording, [request(1, 1), spoilt]) == []


def test_what_the_server_adds_is_allowed_from_the_cache(recording: Recording) -> None:
    assert reasons(recording, [request(1, 1, cached_tokens=6)], added_tokens=4) == []


def test_a_cell_that_may_be_warm_is(recording: Recording) -> None:
    assert reasons(recording, [request(1, 1, cached_tokens=6)], cold=False) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"min_requests": 2}, "minimums: 1 of 2 requests in 2.0 of 0.0 s"),
        ({"min_duration_s": 2.5}, "minimums: 1 of 1 requests in 2.0 of 2.5 s"),
        ({"client": {"cpu_frac": 0.81}}, "client_busy: a load process used 81% of its core"),
        (
            {"client": {"ceiling_frac": 0.9}},
            "client_ceiling: the load was 90% of what this client can measure",
        ),
        ({"client": {"telemetry_faults": ["host: OSError()"]}}, "telemetry: host: OSError()"),
    ],
)
def test_what_a_cell_can_be_against(
    recording: Recording, changes: dict[str, Any], reason: str
) -> None:
    assert reasons(recording, [request(1, 1)], **changes) == [reason]


def test_a_fault_of_the_engine_run_stands_against_its_cells(recording: Recording) -> None:
    broken = run(fault="wrong_answer: said 'no'")
    put(recording, engine_run=[broken], cell=[cell(1)], request=[request(1, 1)])
    assert pronounce(recording.con, 1) == ["wrong_answer: said 'no'"]
    row = recording.con.execute("SELECT verdict, reasons FROM cell").fetchall()
    assert row == [("INVALID", ["wrong_answer: said 'no'"])]


@pytest.mark.parametrize(("tokens", "said"), [(1, []), (4, []), (5, ["5"]), (0, ["0"])])
def test_an_answer_that_ends_by_itself_has_some_tokens_and_no_more_than_asked(
    recording: Recording, tokens: int, said: list[str]
) -> None:
    found = reasons(recording, [request(1, 1, output_tokens=tokens)], ends_itself=True)
    assert found == [f"output_length: 1 of 1 had {n} output tokens, not 4" for n in said]


def counter(t_ns: int, name: str, value: float, cell_id: int = 1) -> dict[str, Any]:
    ids = {"run_id": 1, "cell_id": cell_id, "labels": ""}
    return ids | {"t_ns": t_ns, "name": name, "value": value}


@pytest.mark.parametrize(("hits", "cold"), [(2, True), (3, False)])
def test_the_engines_own_counter_tells_of_hits_that_no_usage_does(
    recording: Recording, hits: int, cold: bool
) -> None:
    """Two tokens a request are allowed; a counter that appears later began at zero."""
    put(recording, scrape=[{"run_id": 1, "cell_id": 1, "t_ns": t, "took_ns": 1} for t in (1, 9)])
    put(
        recording,
        engine_metric=[
            counter(1, "vllm:prefix_cache_hits_total", 50),
            counter(9, "vllm:prefix_cache_hits_total", 50 + hits),
        ],
    )
    found = reasons(recording, [request(1, 1, cached_tokens=None)])
    said = f"warm_cache: the engine took {hits} prompt tokens from its cache, by its counter"
    assert found == ([] if cold else [said])


def test_a_counter_that_falls_is_a_restart(recording: Recording) -> None:
    name = "vllm:prompt_tokens_total"
    put(recording, engine_metric=[counter(1, name, 90), counter(2, name, 7)])
    found = reasons(recording, [request(1, 1)])
    assert found == ["engine_restarted: vllm:prompt_tokens_total fell from 90 to 7"]


def test_requests_that_leave_late(recording: Recording) -> None:
    times = [100.0 * i for i in range(12)]
    found = reasons(recording, sent_at(times, late_ms=6), **OPEN)
    assert found == ["schedule_lag: p99 of sent after scheduled is 6.0 ms, limit 5.0 ms"]


def test_a_lag_below_one_percent_of_the_wait_is_allowed(recording: Recording) -> None:
    slow = sent_at([100.0 * i for i in range(12)], late_ms=6, first_token_ns=3_000 * MS)
    assert reasons(recording, slow, **OPEN, ended_ns=9_000 * MS) == []


def test_a_rate_that_was_not_achieved(recording: Recording) -> None:
    """101 arrivals at 5 a second where 10 were asked for; chance allows 33 %."""
    found = reasons(recording, sent_at([200.0 * i for i in range(101)]), **OPEN)
    said = "achieved_rate: 5.00 of 10.00 requests a second were planned, within 33% allowed"
    assert said in found
    assert "arrival_dispersion: gaps scatter by 0.00, not by the 1.00 of poisson arrivals" in found


def test_a_constant_rate_has_no_chance_in_it(recording: Recording) -> None:
    times = [106.0 * i for i in range(30)]
    found = reasons(recording, sent_at(times), **(OPEN | {"load": "constant"}))
    said = "achieved_rate: 9.43 of 10.00 requests a second were planned, within 5% allowed"
    assert found == [said]


def test_sends_slower_than_planned(recording: Recording) -> None:
    """Due every 100 ms, sent every 150 ms: no chance in that, however few they are."""
    due = sent_at([100.0 * i for i in range(12)])
    for i, row in enumerate(due):
        row["sent_ns"] = due[0]["sent_ns"] + 150 * MS * i
    found = reasons(recording, due, **OPEN)
    assert "achieved_rate: 6.67 requests a second were sent, 10.00 planned" in found


def test_sends_that_scatter_otherwise_than_planned(recording: Recording) -> None:
    """Due every 100 ms, sent in pairs: gaps of 0 and 200 ms scatter by 1."""
    due = sent_at([100.0 * i for i in range(41)])
    for row in due:
        row["sent_ns"] = row["scheduled_ns"] // (200 * MS) * 200 * MS
    found = reasons(recording, due, **(OPEN | {"load": "constant"}))
    assert found == ["arrival_dispersion: gaps scatter by 1.00 as sent, by 0.00 as planned"]


def test_a_cap_in_front_of_the_server_may_hold_requests_back(recording: Recording) -> None:
    """Sent in pairs, half as often as due."""
    due = sent_at([100.0 * i for i in range(41)])
    for row in due:
        row["sent_ns"] = row["scheduled_ns"] // (200 * MS) * 400 * MS
        row["first_token_ns"] = row["sent_ns"] + 20 * MS
    capped = OPEN | {"load": "constant", "front_cap": True}
    assert reasons(recording, due, **capped, ended_ns=9_000 * MS) == []


def test_poisson_arrivals_pass(recording: Recording) -> None:
    from itertools import islice

    from harness.arrivals import gamma

    for shape, load in ((1.0, "poisson"), (0.25, "gamma")):
        times = [ns / MS for ns in islice(gamma(10.0, shape, "seed"), 300)]
        shaped = OPEN | {"load": load, "burstiness": shape}
        assert reasons(recording, sent_at(times), **shaped) == []
        for table in ("engine_run", "cell", "request"):
            recording.con.execute(f"DELETE FROM {table}")


def busy(n: int, in_flight: int) -> list[dict[str, Any]]:
    """A closed loop: `in_flight` requests of 100 ms at a time, one after another."""
    starts = [100.0 * (i // in_flight) for i in range(n)]
    rows = sent_at(starts)
    for row in rows:
        row["ended_ns"] = row["sent_ns"] + 100 * MS
    return rows


def test_concurrency_that_the_client_did_not_hold(recording: Recording) -> None:
    found = reasons(recording, busy(30, 2), in_flight=4)
    assert found == ["concurrency: the client kept 2.0 of 4 requests in flight"]


@pytest.mark.parametrize(
    ("running", "waiting", "reached"), [(3, 0, True), (2, 2, True), (2, 0, False)]
)
def test_concurrency_that_the_engine_did_not_see(
    recording: Recording, running: int, waiting: int, reached: bool
) -> None:
    looks = [100 * MS * i for i in range(6)]
    put(recording, scrape=[{"run_id": 1, "cell_id": 1, "t_ns": t, "took_ns": 1} for t in looks])
    put(
        recording,
        engine_metric=[
            counter(looks[1], "vllm:num_requests_running", running),
            counter(looks[1], "vllm:num_requests_waiting", waiting),
        ],
    )
    found = reasons(recording, busy(40, 4), in_flight=4)
    said = ["concurrency: the engine had at most 2 of 4 requests at a time"]
    assert found == ([] if reached else said)


@pytest.mark.parametrize(("n", "steady"), [(40, False), (24, True)])
def test_a_level_that_drifts(recording: Recording, n: int, steady: bool) -> None:
    """Each request takes 2 ms more than the one before; 24 requests are too few to say."""
    rows = busy(n, 1)
    for number, row in enumerate(rows):
        row["last_token_ns"] = row["scheduled_ns"] + (50 + 2 * number) * MS
    found = reasons(recording, rows, ended_ns=9 * SECOND)
    said = "steady_state: requests took 54 ms in the first and 124 ms in the last of 8 windows"
    assert found == ([] if steady else [said + " (p = 0.0000)"])


def gpu(t_ms: int, **changes: Any) -> dict[str, Any]:
    sample = {"cell_id": 1, "t_ns": t_ms * MS, "gpu": 0, "sm_clock_mhz": 1980, "busy_frac": 1.0}
    return sample | {"throttle_reasons": 0} | changes


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sm_clock_mhz": 1200}, "gpu_clock: GPU 0 ran at 1200 to 1980 MHz"),
        ({"sm_clock_mhz": 1200, "busy_frac": 0.0}, None),
        ({"throttle_reasons": 4}, None),
        (
            {"throttle_reasons": 0x20},
            "gpu_clock: GPU 0 was slowed by heat or power in 1 of 4 looks",
        ),
    ],
)
def test_a_gpu_clock_that_moves(
    recording: Recording, changes: dict[str, Any], reason: str | None
) -> None:
    put(recording, gpu_sample=[gpu(1), gpu(2), gpu(3), gpu(4, **changes)])
    found = reasons(recording, [request(1, 1)])
    assert found == ([] if reason is None else [reason])


@pytest.mark.parametrize(
    ("steal", "looks", "sound"), [(0.04, 6, True), (0.06, 6, False), (0.06, 3, True)]
)
def test_cores_that_the_hypervisor_took(
    recording: Recording, steal: float, looks: int, sound: bool
) -> None:
    shares = {"core_busy_frac": [1.0, 0.1], "core_steal_frac": [0.0, steal]}
    put(
        recording,
        host_sample=[
            {"cell_id": 1, "t_ns": (600 + i) * MS, "memory_used_bytes": 1} | shares
            for i in range(looks)
        ],
    )
    found = reasons(recording, [request(1, 1)])
    assert found == ([] if sound else ["cpu_steal: the hypervisor took 6% of core 1"])
