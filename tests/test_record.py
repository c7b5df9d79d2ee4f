"""The whole path against the emulator: recorded times are the true ones, and nothing is lost."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import psutil
import pytest

from harness.recording.store import connect

REPOSITORY = Path(__file__).parents[1]
DECLARATION = """
[episode]
number = "77"
title = "Test"
question = "Is it whole?"

[seeds]
prompts = 1
arrivals = 2
sampling = 3

[tier.cpu]
model = "{model}"
engines = ["{engine}"]
repeats = {repeats}
max_model_tokens = 512
engine_cores = [0]
client_core = 1
request_timeout_s = 10
usd_per_hour = 0.05
price_unit = "core"

[tier.cpu.flags]
{engine} = [{flags}]

[[tier.cpu.sweep]]
name = "length"
endpoint = "{endpoint}"
prompt_tokens = [24, 48]
output_tokens = 8
in_flight = 2
warmup_requests = 2
min_requests = 6
metrics_hz = 5
"""
# The seed tells this run's emulators from any other on the machine.
FLAGS = ["--ttft-ms", "30", "--gap-ms", "5", "--seed", str(os.getpid())]


def root_with(folder: Path, repeats: int = 1, flags: list[str] = FLAGS, **values: str) -> Path:
    episode = folder / "episodes" / "77-test"
    episode.mkdir(parents=True)
    quoted = ", ".join(f'"{flag}"' for flag in flags)
    values = {"endpoint": "completions", "engine": "emulator", "model": "emulator"} | values
    text = DECLARATION.format(repeats=repeats, flags=quoted, **values)
    (episode / "experiment.toml").write_text(text)
    return folder


def start(root: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "harness", "record", "77", "--root", str(root), *more],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run that a shell started in the background ignores SIGINT, and so would this.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def finish(root: Path, *more: str, timeout_s: float = 120) -> dict[str, Any]:
    process = start(root, *more)
    out, err = process.communicate(timeout=timeout_s)
    assert process.returncode == 0, err
    summary: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return summary


def emulators() -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if {"harness.engines.emulator", str(os.getpid())} <= set(process.info["cmdline"] or []):
            found.append(process.pid)
    return found


@pytest.mark.parametrize("endpoint", ["completions", "chat"])
def test_recorded_times_are_the_emulators(tmp_path: Path, endpoint: str) -> None:
    root = root_with(tmp_path, endpoint=endpoint)
    summary = finish(root)
    assert summary["cells"] == summary["valid"] == summary["recorded_now"] == 2
    with connect(root / summary["recording"]) as con:
        rows = con.execute(
            "SELECT prompt_tokens, count(*), min(from_sent_ms), median(from_sent_ms) "
            "FROM ttft GROUP BY 1 ORDER BY 1"
        ).fetchall()
        assert [row[:2] for row in rows] == [(24, 6), (48, 6)]
        for _, _, lowest_ms, median_ms in rows:
            # The emulator answers 30 ms after it has the request; its timer resolves 1 ms.
            assert lowest_ms >= 29.0 and median_ms < 45.0
        (gap_ms,) = con.execute("SELECT median(itl_ms) FROM itl").fetchone() or (0,)
        assert gap_ms == pytest.approx(5.0, abs=1.0)
        assert con.execute("SELECT count(*) FROM itl").fetchone() == (2 * 6 * 7,)
        phases = con.execute("SELECT phase, count(*) FROM request GROUP BY 1 ORDER BY 1").fetchall()
        assert phases == [("measured", 12), ("warmup", 4)]
        for table in ("engine_metric", "scrape", "host_sample", "clock_anchor", "session"):
            assert con.execute(f"SELECT count(*) FROM {table}").fetchone() != (0,), table
        assert con.execute(
            "SELECT engine, ready_ns > started_ns, stopped_ns > ready_ns FROM engine_run"
        ).fetchall() == [("emulator", True, True)]
    assert emulators() == []


@pytest.mark.engines
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("engine", ["transformers", "vllm", "sglang"])
def test_a_real_engine_is_recorded_from_start_to_stop(tmp_path: Path, engine: str) -> None:
    root = root_with(tmp_path, flags=[], engine=engine, model="smollm2-135m-instruct")
    (REPOSITORY / ".engines").mkdir(exist_ok=True)
    (root / ".engines").symlink_to(REPOSITORY / ".engines")
    declaration = root / "episodes" / "77-test" / "experiment.toml"
    probe = 'probe = ["What is the capital of France?", "Paris"]\nusd_per_hour'
    text = declaration.read_text().replace("usd_per_hour", probe)
    declaration.write_text(text.replace("request_timeout_s = 10", "request_timeout_s = 120"))
    summary = finish(root, timeout_s=3000)
    assert (summary["valid"], summary["invalid"]) == (2, 0)
    with connect(root / summary["recording"]) as con:
        assert con.execute("SELECT count(*) FROM ttft").fetchone() == (12,)
        assert con.execute("SELECT count(*) FROM itl").fetchone() == (2 * 6 * 7,)
        assert con.execute("SELECT sum(cached_tokens) FROM request").fetchone() in ((0,), (None,))
        ((answer, version),) = con.execute(
            "SELECT probe_answer, version FROM engine_run"
        ).fetchall()
        assert "Paris" in answer and version
        if engine != "transformers":
            row = con.execute(
                "SELECT max(value) FROM engine_gauge WHERE gauge = 'running'"
            ).fetchone()
            assert row == (2.0,)
            stages = con.execute("SELECT DISTINCT stage FROM engine_stage").fetchall()
            assert {"queue", "prefill"} <= {stage for (stage,) in stages}


def test_a_server_that_runs_already_is_recorded_without_being_started(tmp_path: Path) -> None:
    root = root_with(tmp_path)
    server = subprocess.Popen(
        [sys.executable, "-m", "harness.engines.emulator", "--port", "18177", *FLAGS],
        cwd=REPOSITORY,
    )
    try:
        time.sleep(1.5)
        summary = finish(root, "--url", "http://127.0.0.1:18177")
        assert server.poll() is None
    finally:
        server.kill()
        server.wait()
    assert summary["engines"] == ["external"]
    assert summary["valid"] == 2
    with connect(root / summary["recording"]) as con:
        assert con.execute("SELECT DISTINCT engine FROM ttft").fetchall() == [("external",)]
        assert con.execute(
            "SELECT DISTINCT server_prompt_tokens = prompt_tokens FROM measured_request"
        ).fetchall() == [(True,)]
        assert con.execute("SELECT DISTINCT seed_prompts = 1 FROM cell").fetchall() == [(False,)]


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://host:port", "URL: not an address such as"),
        ("127.0.0.1:8000", "URL: not an address such as"),
        ("http://me:hush@127.0.0.1:9", "URL: holds a name or password"),
        ("http://127.0.0.1:9/v1/", "http://127.0.0.1:9/v1/models: can't be reached"),
    ],
)
def test_an_address_that_leads_nowhere_is_said_and_leaves_no_file(
    tmp_path: Path, url: str, error: str
) -> None:
    root = root_with(tmp_path)
    process = start(root, "--url", url)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert error in err and "hush" not in err and "Traceback" not in err
    assert not (root / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["record"], 2),
        (["record", "77", "--port", "abc"], 2),
        (["record", "77", "--port", "-1"], 2),
    ],
)
def test_wrong_usage_is_explained(arguments: list[str], code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness", *arguments],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr and "Usage" in done.stderr


def test_a_recording_is_not_continued_with_another_model(tmp_path: Path) -> None:
    root = root_with(tmp_path, flags=[*FLAGS, "--die-after", "12"])
    start(root).communicate(timeout=60)
    (partial,) = (root / "data" / "77").glob("*.partial.duckdb")
    with connect(partial, read_only=False) as con:
        con.execute("UPDATE model SET source = 'another'")
    process = start(root)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "begun with emulator (another), so it can't be continued" in err


def test_killed_at_twenty_moments_it_loses_at_most_the_cell_in_flight(tmp_path: Path) -> None:
    root = root_with(tmp_path, repeats=30)
    rng = random.Random(77)
    partial: Path | None = None
    for _ in range(20):
        process = start(root)
        time.sleep(rng.uniform(1.0, 6.0))
        process.send_signal(signal.SIGKILL)
        _, err = process.communicate()
        printed = [int(number) for number in re.findall(r"^cell (\d+) of 60", err, re.MULTILINE)]
        files = list((root / "data" / "77").glob("*.partial.duckdb"))
        if not files:
            continue  # killed before it had created the file
        partial = files[0]
        with connect(partial, read_only=False) as con:
            kept = {row[0] for row in con.execute("SELECT position FROM cell").fetchall()}
            # A cell is printed after it is committed: at most one can be in without being printed.
            assert set(printed) <= kept
            assert kept == set(range(1, len(kept) + 1))
            whole = con.execute(
                "SELECT count(*) FROM (SELECT cell_id FROM request GROUP BY 1 HAVING count(*) = 8)"
            ).fetchone()
            assert whole == (len(kept),)
    assert partial is not None and kept, "nothing was recorded before any of the kills"
    with duckdb.connect(str(partial)) as con:  # the rest need not be recorded to be sure
        con.execute("SELECT count(*) FROM ttft").fetchone()
    process = start(root)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("cell "):
            assert int(line.split()[1]) == len(kept) + 1  # it goes on where it was
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert emulators() == []


def test_a_finished_recording_is_left_alone_and_the_next_gets_a_name_of_its_own(
    tmp_path: Path,
) -> None:
    root = root_with(tmp_path)
    first, second = finish(root), finish(root)
    assert first["recording"] != second["recording"]
    assert second["recording"].endswith("-2.duckdb")
    assert (root / first["recording"]).exists()


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--die-after", "3"], "emulator: died while it was loaded"),
        (["--no-such-flag"], "emulator"),
    ],
)
def test_an_engine_that_dies_is_named_and_what_was_recorded_stays(
    tmp_path: Path, flags: list[str], error: str
) -> None:
    root = root_with(tmp_path, flags=[*FLAGS, *flags])
    process = start(root)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert error in " ".join(err.split())
    (partial,) = (root / "data" / "77").glob("*.partial.duckdb")
    with connect(partial) as con:
        (note,) = con.execute("SELECT exit_note FROM engine_run").fetchone() or (None,)
        assert note
    assert emulators() == []


def test_failures_make_a_cell_invalid_but_are_kept(tmp_path: Path) -> None:
    root = root_with(tmp_path, flags=[*FLAGS, "--fault", "no_finish"])
    summary = finish(root)
    assert (summary["valid"], summary["invalid"]) == (0, 2)
    with connect(root / summary["recording"]) as con:
        reasons = con.execute("SELECT reasons[1] FROM cell").fetchall()
        assert reasons == [("errors: 6 of 6 failed, first: no finish reason",)] * 2
        assert con.execute("SELECT count(*) FROM ttft").fetchone() == (0,)
        assert con.execute("SELECT sum(failed) FROM outcome").fetchone() == (12,)


def test_a_port_in_use_is_said_before_anything_starts(tmp_path: Path) -> None:
    import socket

    root = root_with(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start(root, "--port", str(port))
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert str(port) in err and str(os.getpid()) in err


def test_a_core_that_is_not_there_is_named(tmp_path: Path) -> None:
    root = root_with(tmp_path)
    path = root / "episodes" / "77-test" / "experiment.toml"
    path.write_text(path.read_text().replace("client_core = 1", "client_core = 4000"))
    process = start(root)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "pins to core 4000" in " ".join(err.split())


def test_a_secret_in_the_flags_stops_it_before_anything_is_begun(tmp_path: Path) -> None:
    root = root_with(tmp_path, flags=[*FLAGS, "--api-key", "hush"])
    process = start(root)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the flags of emulator in tier.cpu hold a secret" in " ".join(err.split())
    assert not list((root / "data").glob("*/*.duckdb"))


def test_a_missing_episode_is_named(tmp_path: Path) -> None:
    process = start(root_with(tmp_path).parent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "no episode '77'" in err


def test_a_changed_declaration_is_not_mixed_into_a_recording(tmp_path: Path) -> None:
    root = root_with(tmp_path, flags=[*FLAGS, "--die-after", "12"])
    start(root).communicate(timeout=60)
    path = root / "episodes" / "77-test" / "experiment.toml"
    path.write_text(path.read_text().replace("output_tokens = 8", "output_tokens = 9"))
    process = start(root)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "begun under another version of experiment.toml" in " ".join(err.split())
