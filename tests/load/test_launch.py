"""Load processes as the harness starts them: one and several, on one machine and on two."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from harness.errors import HarnessError
from harness.load.clock import Clock
from harness.load.desk import Desk
from harness.load.launch import LoadResult, Remote, run
from harness.load.parse import ParsedRequest, parse_request
from harness.load.plan import LoadPlan, PlannedRequest, save_plan
from harness.load.spool import read_anchors, read_requests
from tests.emulate import free_port, request_body, running_emulator

NOISE_NS = 2_000_000  # a core that others use too
AHEAD_S = 1000  # of the other machine's clock


def plan(folder: Path, url: str, **changes: Any) -> LoadPlan:
    settings: dict[str, Any] = {
        "url": url + "/v1/completions",
        "in_flight": 5,
        "min_requests": 1000,
        "min_duration_s": 0.0,
        "timeout_s": 5.0,
        "cores": (),
        "spool_path": str(folder / "spool"),
    }
    return LoadPlan(**{**settings, **changes})


def sessions() -> list[PlannedRequest]:
    """5 requests to warm up, then 12 sessions of two turns, 1 ms apart."""
    warmup = [PlannedRequest(number, "warmup", request_body()) for number in range(1, 6)]
    return warmup + [
        PlannedRequest(
            number,
            "measured",
            request_body(max_tokens=3),
            due_ns=None if number % 2 else (number - 6) * 500_000,
            session=number // 2,
            think_ns=2_000_000 if number % 2 else 0,
        )
        for number in range(6, 30)
    ]


def ended_ns(result: LoadResult) -> dict[int, int]:
    """By request; user space's time, which is the one that the client goes on from."""
    return {raw.request_id: raw.ended_ns for spool in result.spools for raw in read_requests(spool)}


def parsed(result: LoadResult) -> list[tuple[int, ParsedRequest]]:
    """With the number of the process."""
    return [
        (process, parse_request(raw, clock))
        for process, spool in enumerate(result.spools)
        for clock in [Clock(read_anchors(spool))]
        for raw in read_requests(spool)
    ]


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    made = [tmp_path / name for name in ("one", "two")]
    for folder in made:
        folder.mkdir()
    return made


def test_one_and_two_processes_record_the_same_cell(folders: list[Path]) -> None:
    with running_emulator(ttft_ms=5, gap_ms=1) as url:
        one, two = (
            run(plan(folder, url), sessions(), processes, folder)
            for processes, folder in enumerate(folders, start=1)
        )
    assert [len(one.spools), len(two.spools)] == [1, 2]
    for result in (one, two):
        got = parsed(result)
        assert sorted(request.request_id for _, request in got) == list(range(1, 30))
        assert all(request.error is None for _, request in got)
        assert sum(request.client_output_tokens for _, request in got) == 5 * 4 + 24 * 3
        assert (result.summary["requests"], result.summary["minimums_met"]) == (24, True)
        assert result.summary["schedule_lag_p50_ns"] >= 0
        measured_ns = result.summary["measured_ns"]
        assert max(r.ended_ns for _, r in got if r.phase == "warmup") <= measured_ns
        ended = ended_ns(result)
        requests = {request.request_id: (process, request) for process, request in got}
        for number in range(6, 30, 2):
            (process, first), (other, second) = requests[number], requests[number + 1]
            assert first.scheduled_ns == measured_ns + (number - 6) * 500_000
            assert second.scheduled_ns == ended[number] + 2_000_000
            assert (process, first.slot) == (other, second.slot)
            assert (first.sent_ns or 0) >= first.scheduled_ns
    shares = [process["requests"] for process in two.summary["processes"]]
    assert shares == [12, 12]
    assert {process["clock"]["offset_ns"] for process in two.summary["processes"]} == {0}


def test_a_closed_loop_over_two_processes_ends_with_its_minimum(tmp_path: Path) -> None:
    requests = [PlannedRequest(number, "measured", request_body()) for number in range(1, 401)]
    with running_emulator(ttft_ms=2, gap_ms=1) as url:
        result = run(plan(tmp_path, url, min_requests=30), requests, 2, tmp_path)
    got = [request.request_id for _, request in parsed(result)]
    assert 30 <= len(got) == len(set(got)) <= 30 + 5  # what is in flight at the end is finished
    assert result.summary["minimums_met"] is True


@contextlib.contextmanager
def other_machine() -> Iterator[tuple[str, list[str], list[str], int]]:
    """The master's address, prefixes of commands that run there without and with a clock that is
    AHEAD_S ahead, and by how much it is: a network namespace and a time namespace. Where there may
    be none of either, both machines are this one."""
    name, link = "tbt" + uuid.uuid4().hex[:8], "v" + uuid.uuid4().hex[:8]
    inside, ahead = ["ip", "netns", "exec", name], ["unshare", "--time", f"--monotonic={AHEAD_S}"]
    address, there = "10.213.77.1", "10.213.77.2"
    commands = (
        f"ip netns add {name}",
        f"ip link add {link} type veth peer name {link}p netns {name}",
        f"ip address add {address}/30 dev {link}",
        f"ip link set {link} up",
        f"ip -n {name} address add {there}/30 dev {link}p",
        f"ip -n {name} link set {link}p up",
        f"ip -n {name} link set lo up",
        " ".join([*inside, *ahead, "true"]),
    )
    try:
        try:
            for command in commands:
                subprocess.run(command.split(), check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            yield "127.0.0.1", [], [], 0
        else:
            yield address, inside, [*inside, *ahead], AHEAD_S
    finally:
        with contextlib.suppress(OSError):
            subprocess.run(["ip", "link", "delete", link], capture_output=True)
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def test_a_worker_on_another_machine_is_brought_onto_our_clock(tmp_path: Path) -> None:
    with other_machine() as (address, inside, shifted, ahead_s):
        port, listen = free_port(), f"{address}:{free_port()}"
        # One emulator on each machine, on the same port of its loopback; its truth is on our clock.
        argv = [sys.executable, "-m", "harness.engines.emulator", "--port", str(port)]
        argv += ["--ttft-ms", "20", "--gap-ms", "10"]
        join = [*shifted, sys.executable, "-m", "harness.load", "--worker", listen]
        with contextlib.ExitStack() as stack:
            commands = [argv, join] if not inside else [argv, [*inside, *argv], join]
            for command in commands:
                process = stack.enter_context(subprocess.Popen(command))
                stack.callback(process.kill)
            time.sleep(1.0)
            asked = plan(tmp_path, f"http://127.0.0.1:{port}")
            result = run(asked, sessions(), 1, tmp_path, remote=Remote(listen, 1))
    clock = result.summary["processes"][1]["clock"]
    assert abs(clock["offset_ns"] + ahead_s * 10**9) <= clock["uncertainty_ns"] < NOISE_NS
    assert (clock["uncertainty_ns"] > 0) == (ahead_s > 0)
    got = parsed(result)
    assert sorted(request.request_id for _, request in got) == list(range(1, 30))
    assert [process for process, _ in got].count(1) == 14
    assert all(request.error is None and not request.unstamped_reads for _, request in got)
    errors_ns = []
    for raw, (_, request) in zip(
        [raw for spool in result.spools for raw in read_requests(spool)], got, strict=True
    ):
        assert request.first_token_ns is not None
        truth = re.search(rb'"emulator_ns":(\d+)', raw.data)
        assert truth is not None
        errors_ns.append(request.first_token_ns - int(truth[1]))
    assert min(errors_ns) >= -clock["uncertainty_ns"]
    assert sorted(errors_ns)[len(errors_ns) * 9 // 10] < NOISE_NS


def test_what_can_not_be_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="6 load processes for 5 connections"):
        run(plan(tmp_path, "http://127.0.0.1:1"), [], 6, tmp_path)
    with pytest.raises(HarnessError, match="can't listen for load workers at 192"):
        run(
            plan(tmp_path, "http://127.0.0.1:1"),
            [],
            1,
            tmp_path,
            remote=Remote("192.0.2.1:5557", 1),
        )


def test_an_engine_that_dies_stops_the_load(tmp_path: Path) -> None:
    requests = [PlannedRequest(number, "measured", request_body()) for number in range(1, 9)]
    with (
        running_emulator(ttft_ms=3000) as url,
        pytest.raises(HarnessError, match="the engine died while it was loaded"),
    ):
        run(plan(tmp_path, url), requests, 1, tmp_path, alive=lambda: False)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_torn_plan_is_named(tmp_path: Path, processes: int) -> None:
    torn = tmp_path / "torn.jsonl"
    with running_emulator(ttft_ms=1, gap_ms=1) as url:
        save_plan(torn, plan(tmp_path, url), sessions())
        torn.write_bytes(torn.read_bytes()[:-10])
        argv = [sys.executable, "-m", "harness.load", str(torn), "--processes", str(processes)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "torn.jsonl:30: not a line of a plan" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_worker_that_is_killed_ends_the_cell_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "plan.jsonl"
    with running_emulator(ttft_ms=30_000) as url:
        save_plan(path, plan(tmp_path, url, timeout_s=60.0), sessions())
        argv = [sys.executable, "-m", "harness.load", str(path), "--processes", "2"]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
            while len(workers := psutil.Process(process.pid).children()) < 2:
                time.sleep(0.05)
            time.sleep(1.0)
            workers[0].kill()
            _, said = process.communicate(timeout=20)
        assert process.returncode == 1
        assert "a load worker ended with status -9" in said
        psutil.wait_procs(workers, timeout=5)
        assert not any(worker.is_running() for worker in workers)


def test_a_worker_elsewhere_that_falls_silent_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "plan.jsonl"
    save_plan(path, plan(tmp_path, "http://127.0.0.1:1"), sessions())
    beats = [SimpleNamespace(id=name, heartbeat=3) for name in ("near", "far")]
    runner: Any = SimpleNamespace(
        register_message=lambda *_: None,
        clients=SimpleNamespace(all=beats),
        send_message=lambda what, data, who: said.append((who, data)),
    )
    said: list[tuple[str, Any]] = []
    desk = Desk(path, runner, local=0, remote=2)
    for name in ("near", "far", "late"):
        hello = {"what": "hello", "data": {"clock": "?", "spool": None}}
        desk._asked(None, SimpleNamespace(node_id=name, data=hello))
    welcome = {"same_clock": False}
    assert said == [("near", welcome), ("far", welcome), ("late", None)]
    assert (desk.missing, desk.lost()) == (0, [])
    beats[1].heartbeat = -9
    assert desk.lost() == ["far"]


def test_the_summary_line_is_json(tmp_path: Path) -> None:
    with running_emulator(ttft_ms=1, gap_ms=1) as url:
        result = run(plan(tmp_path, url), sessions()[:6], 1, tmp_path)
    assert json.loads(json.dumps(result.summary)) == result.summary
    assert os.path.getsize(result.spools[0]) > 0
