"""The ceiling of this client on this machine: how much load it can time, by number of processes.

    python -m harness calibrate     (make calibrate)

A recording says which share of this it used, so that a client near its own limits is not taken for
a slow engine. Against the emulator on the first core the load is stepped up, by half of it each
time, until a step fails twice:
- chunks/s, in streams of 50/s, until the p99 error of a chunk's time (recorded arrival minus the
  emulator's time before its write) passes 0.1 ms, or more than 1 % of chunks share a read with
  what follows (the last chunk of a request does so always, and does not count);
- requests/s, in an open loop, until the p99 of sent minus scheduled passes 5 ms.
A step also fails where a request fails, or less than 95 % of the rate is reached; where the client
had time to spare then, the limit is named "emulator", and the client's own is higher. The ceiling
is the highest rate that passed. Takes one to two minutes for each number
of processes.

These are 1, 2, 4 and so on, as long as each has a core that is not the emulator's; of two cores,
the second process shares the emulator's. Several processes are Locust's master and workers, as
load machines are: its other mode, --processes, forks them and is of its command line alone.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from harness.bench import TRUTH
from harness.engines.ports import free_port
from harness.errors import HarnessError
from harness.load.ceiling import FOLDER
from harness.load.clock import Clock
from harness.load.launch import run
from harness.load.parse import parse_request
from harness.load.plan import LoadPlan, PlannedRequest
from harness.load.spool import read_anchors, read_requests
from harness.telemetry import machine

STEP_S = 2.0
STEP_UP = 1.5
GAP_MS = 20
STREAM_PER_S = 1000 / GAP_MS
FIRST_CHUNKS_PER_S, FIRST_REQUESTS_PER_S = 15_000, 700
MAX_ERROR_NS, MAX_SHARED_FRAC, MAX_LAG_NS = 100_000, 0.01, 5_000_000
MIN_RATE_FRAC = 0.95
FULL_CORE_FRAC = 0.9

Step = dict[str, Any]


def calibrate(root: Path, say: Callable[[str], None], commit: str | None) -> Path:
    """Writes data/calibration/<date>-<tier>.json and returns its path."""
    _, client_cores = split(os.sched_getaffinity(0))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the emulator inherits it
    steps: list[Step] = []
    found: dict[str, dict[str, Any]] = {}
    first = {"chunks": FIRST_CHUNKS_PER_S, "requests": FIRST_REQUESTS_PER_S}
    for processes in counts(client_cores):
        ceiling: dict[str, Any] = {}
        for kind, measure in (("chunks", _chunk_step), ("requests", _request_step)):
            climbed = climb(first[kind], measure, processes, say)
            steps += climbed
            ceiling |= summit(kind, climbed)
            first[kind] = ceiling[f"{kind}_per_s"] or first[kind]
        if all(ceiling[f"{kind}_per_s"] for kind in first):
            found[str(processes)] = ceiling
    now = datetime.now(UTC)
    result = {
        "measured_at": now.isoformat(timespec="seconds"),
        "harness_commit": commit,
        "machine": machine.describe(),
        "processes": found,
        "steps": steps,
    }
    path = root / FOLDER / f"{now.date()}-{machine.tier()}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return path


def split(cores: set[int]) -> tuple[int, tuple[int, ...]]:
    """The emulator's core, and the client's. Raises HarnessError where there is one core."""
    first, *others = sorted(cores)
    if not others:
        raise HarnessError("calibrating needs two cores: one for the emulator, one for the client")
    return first, (*others, first) if len(others) == 1 else tuple(others)


def counts(client_cores: tuple[int, ...]) -> list[int]:
    """Powers of two, as far as there is a core for each process."""
    return [1 << power for power in range(len(client_cores).bit_length())]


def climb(
    first_per_s: float,
    measure: Callable[[float, int], Step],
    processes: int,
    say: Callable[[str], None],
) -> list[Step]:
    """Steps up until one fails twice; where the first fails already, down until one passes."""
    steps: list[Step] = []
    rate_per_s, falling = first_per_s, False
    while True:
        tries = 1 if falling else 2
        for _ in range(tries):
            steps.append(measure(rate_per_s, processes))
            say(describe(steps[-1]))
            if steps[-1]["limit"] is None:
                break
        passed = steps[-1]["limit"] is None
        if passed and falling:
            return steps
        if not passed and any(step["limit"] is None for step in steps):
            return steps
        falling = not passed
        rate_per_s = rate_per_s * STEP_UP if passed else rate_per_s / STEP_UP
        if rate_per_s < first_per_s / 100:
            return steps


def summit(kind: str, steps: list[Step]) -> dict[str, Any]:
    """The highest rate that passed (0 where none did), and what stopped the next one."""
    passed = [step["per_s"] for step in steps if step["limit"] is None]
    failed = [step for step in steps if step["limit"] is not None]
    lowest = min(failed, key=lambda step: step["asked_per_s"])
    return {f"{kind}_per_s": max(passed, default=0.0), f"{kind}_limit": lowest["limit"]}


def describe(step: Step) -> str:
    figures = ", ".join(
        f"{name} {step[name]:.4g}"
        for name in ("p99_error_ms", "shared_frac", "p99_lag_ms", "client_core_frac")
        if step.get(name) is not None
    )
    verdict = f"stopped by {step['limit']}" if step["limit"] else "passed"
    return (
        f"{step['processes']} process(es), {step['asked_per_s']:,.0f} {step['kind']}/s asked, "
        f"{step['per_s']:,.0f} reached: {figures}: {verdict}"
    )


def _chunk_step(chunks_per_s: float, processes: int) -> Step:
    streams = max(round(chunks_per_s / STREAM_PER_S), processes)
    tokens = round(STEP_S * STREAM_PER_S)
    requests = [PlannedRequest(n, "measured", _body(tokens)) for n in range(1, streams + 1)]
    emulator = ["--gap-ms", str(GAP_MS), "--phase-ms", str(GAP_MS), "--ttft-ms", "300"]
    with _recorded(emulator, requests, streams, processes) as (spools, summary, server_frac):
        errors_ns, arrivals_ns, shared, failed = _compare(spools)
    errors = np.concatenate(errors_ns)
    arrivals = np.concatenate(arrivals_ns)
    per_s = len(arrivals) / (np.ptp(arrivals) / 1e9)
    p99_ns = float(np.percentile(np.abs(errors), 99))
    shared_frac = float(shared / len(errors))
    reasons = {
        "failed requests": failed > 0,
        "error": p99_ns > MAX_ERROR_NS,
        "shared": shared_frac > MAX_SHARED_FRAC,
        # The phases of the streams spread over one gap, so the edges are thinner than the middle.
        "rate": per_s < MIN_RATE_FRAC * chunks_per_s * STEP_S / (STEP_S + GAP_MS / 1000),
    }
    figures = {"p99_error_ms": p99_ns / 1e6, "shared_frac": shared_frac}
    return _step("chunks", chunks_per_s, per_s, processes, reasons, summary, server_frac) | figures


def _request_step(requests_per_s: float, processes: int) -> Step:
    count = round(requests_per_s * STEP_S)
    requests = [
        PlannedRequest(n + 1, "measured", _body(2), due_ns=round(n / requests_per_s * 1e9))
        for n in range(count)
    ]
    connections = max(round(requests_per_s * 0.1), 16)
    emulator = ["--gap-ms", "1", "--ttft-ms", "5"]
    with _recorded(emulator, requests, connections, processes) as (spools, summary, server_frac):
        sent_ns = [raw.sent_ns for raw in _requests(spools) if raw.sent_ns is not None]
        failed = sum(raw.error is not None for raw in _requests(spools))
    per_s = (len(sent_ns) - 1) / ((max(sent_ns) - min(sent_ns)) / 1e9)
    lag_ns = summary["schedule_lag_p99_ns"]
    reasons = {
        "failed requests": failed > 0,
        "lag": lag_ns > MAX_LAG_NS,
        "rate": per_s < MIN_RATE_FRAC * requests_per_s,
    }
    figures = {"p99_lag_ms": lag_ns / 1e6}
    step = _step("requests", requests_per_s, per_s, processes, reasons, summary, server_frac)
    return step | figures


def _step(
    kind: str,
    asked_per_s: float,
    per_s: float,
    processes: int,
    reasons: dict[str, bool],
    summary: dict[str, Any],
    server_frac: float,
) -> Step:
    limit = next((name for name, so in reasons.items() if so), None)
    if reasons["rate"] and summary["cpu_frac"] < FULL_CORE_FRAC:
        limit = "emulator"
    return {
        "kind": kind,
        "processes": processes,
        "asked_per_s": asked_per_s,
        "per_s": float(per_s),
        "limit": limit,
        "client_core_frac": summary["cpu_frac"],
        "emulator_core_frac": server_frac,
    }


def _body(tokens: int) -> str:
    body = {"model": "emulator", "prompt": [1] * 32, "max_tokens": tokens, "stream": True}
    return json.dumps(body | {"stream_options": {"include_usage": True}})


@contextmanager
def _recorded(
    emulator: list[str], requests: list[PlannedRequest], connections: int, processes: int
) -> Iterator[tuple[tuple[Path, ...], dict[str, Any], float]]:
    """The spools and the summary of a run, and the share of its core that the emulator used."""
    port = free_port()
    server_core, client_cores = split(os.sched_getaffinity(0))
    argv = [sys.executable, "-m", "harness.engines.emulator", "--port", str(port), *emulator]
    with (
        tempfile.TemporaryDirectory(prefix="token-by-token-") as folder,
        subprocess.Popen(argv, stdout=subprocess.DEVNULL) as server,
    ):
        try:
            watched = psutil.Process(server.pid)
            watched.cpu_affinity([server_core])
            with suppress(OSError):  # as the client, so that neighbours take no time from either
                os.sched_setscheduler(server.pid, os.SCHED_FIFO, os.sched_param(1))
            _wait_for(port, server)
            plan = LoadPlan(
                url=f"http://127.0.0.1:{port}/v1/completions",
                in_flight=connections,
                min_requests=len(requests),
                min_duration_s=0.0,
                timeout_s=10 * STEP_S,
                cores=client_cores,
                spool_path=str(Path(folder) / "spool"),
            )
            before = watched.cpu_times()
            done = run(plan, requests, processes, Path(folder))
            after = watched.cpu_times()
            used_s = after.user + after.system - before.user - before.system
            seconds = (done.summary["ended_ns"] - done.summary["measured_ns"]) / 1e9
            yield done.spools, done.summary, used_s / seconds
        finally:
            server.kill()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if any(c.laddr.port == port for c in psutil.Process(server.pid).net_connections("tcp")):
            return
        if server.poll() is not None:
            break
        time.sleep(0.05)
    raise HarnessError("the emulator did not start")


def _requests(spools: tuple[Path, ...]) -> Iterator[Any]:
    for spool in spools:
        yield from read_requests(spool)


def _compare(spools: tuple[Path, ...]) -> tuple[list[np.ndarray], list[np.ndarray], int, int]:
    """Of all chunks but the last of each request: errors and arrivals in ns, how many shared a
    read; and how many requests failed."""
    errors_ns, arrivals_ns, shared, failed = [], [], 0, 0
    for spool in spools:
        clock = Clock(read_anchors(spool))
        for raw in read_requests(spool):
            parsed = parse_request(raw, clock)
            if parsed.error or raw.sent_ns is None:
                failed += 1
                continue
            truth = np.array([int(t_ns) for t_ns in TRUTH.findall(raw.data)])[:-1]
            arrived = raw.sent_ns + np.array(parsed.chunk_offset_ns)[:-1]
            errors_ns.append(arrived - truth)
            arrivals_ns.append(arrived)
            shared += sum(parsed.chunk_shared[:-1])
    if not errors_ns:
        raise HarnessError("no request against the emulator was answered")
    return errors_ns, arrivals_ns, shared, failed
