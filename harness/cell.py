"""Runs one cell against a ready engine and gives back its rows.

The load runs in a process of its own, on the client's core; this process samples telemetry while
it waits and parses what was received only after the measured phase is over.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from harness.engines.base import Engine
from harness.engines.process import die_with_parent
from harness.errors import HarnessError
from harness.experiment import Cell, Seeds, Tier
from harness.load.clock import Anchor, Clock
from harness.load.parse import ParsedRequest, parse_request
from harness.load.plan import LoadPlan, PlannedRequest
from harness.load.spool import read_anchors, read_requests
from harness.recording.store import record_of
from harness.recording.verdict import Asked, judge
from harness.telemetry.sampler import Sampler, Telemetry
from harness.workload import Prompt

PACKAGE_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Target:
    """The engine a cell runs against.

    alive: whether its process still runs. pids: all of its processes. exit_note: how it ended.
    fault: a reason against every cell of this run, or None.
    """

    engine: Engine
    base_url: str
    served_name: str
    alive: Callable[[], bool]
    pids: Callable[[], list[int]]
    exit_note: Callable[[], str]
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class CellResult:
    """Rows by table, ready for the recording; each still lacks its ids."""

    cell: dict[str, Any]
    requests: list[dict[str, Any]]
    anchors: list[Anchor]
    telemetry: Telemetry


def run_cell(
    cell: Cell,
    tier: Tier,
    seeds: Seeds,
    target: Target,
    prompts: Iterator[Prompt],
    added_tokens: int,
) -> CellResult:
    """prompts: endless. added_tokens: what the server adds to each.

    Raises HarnessError where the engine or the load process died: such a cell is not kept.
    """
    sweep = cell.sweep
    measured = sweep.max_requests or sweep.min_requests
    chosen = list(islice(prompts, sweep.warmup_requests + measured))
    with tempfile.TemporaryDirectory(prefix="token-by-token-") as folder:
        plan = LoadPlan(
            url=target.engine.endpoint_url(target.base_url, sweep.endpoint),
            in_flight=sweep.in_flight,
            min_requests=sweep.min_requests,
            min_duration_s=sweep.min_duration_s,
            timeout_s=tier.request_timeout_s,
            core=tier.client_core,
            spool_path=str(Path(folder) / "spool"),
            requests=tuple(_planned(cell, seeds, target, chosen)),
        )
        with Sampler(
            target.engine.metrics_url(target.base_url), sweep.metrics_hz, target.pids
        ) as s:
            client = _run_load(plan, Path(folder) / "plan.json", target)
        requests, anchors = _parse(Path(plan.spool_path), client)
    if all(request.error == "connection refused" for request in requests):
        raise HarnessError(f"{target.base_url}: refuses connections, so nothing was measured")
    reasons = judge(
        Asked(cell.prompt_tokens, sweep.output_tokens, sweep.min_requests, added_tokens),
        [request for request in requests if request.phase == "measured"],
        client["cpu_frac"],
        client["minimums_met"],
        s.telemetry.faults,
    )
    if target.fault is not None:
        reasons.append(target.fault)
    return CellResult(
        cell=_cell_row(cell, seeds, client, reasons),
        requests=[_request_row(request, chosen) for request in requests],
        anchors=anchors,
        telemetry=s.telemetry,
    )


def _planned(
    cell: Cell, seeds: Seeds, target: Target, chosen: list[Prompt]
) -> Iterator[PlannedRequest]:
    for number, prompt in enumerate(chosen, start=1):
        body = target.engine.request_body(
            endpoint=cell.sweep.endpoint,
            prompt_ids=prompt.ids,
            prompt_text=prompt.text,
            output_tokens=cell.sweep.output_tokens,
            seed=seeds.sampling,
            served_name=target.served_name,
        )
        phase = "warmup" if number <= cell.sweep.warmup_requests else "measured"
        yield PlannedRequest(request_id=number, phase=phase, body=json.dumps(body))


def _run_load(plan: LoadPlan, path: Path, target: Target) -> dict[str, Any]:
    """Starts the load process, waits for it, and returns its summary line."""
    plan.save(path)
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.load", str(path)],
        cwd=PACKAGE_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
    )
    try:
        while True:
            try:
                out, err = process.communicate(timeout=1.0)
                break
            except subprocess.TimeoutExpired:
                if not target.alive():
                    break
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if not target.alive():
        raise HarnessError(f"{target.engine.name}: died while it was loaded, {target.exit_note()}")
    if process.returncode != 0:
        raise HarnessError(
            f"the load process failed (exit {process.returncode}): {err.strip()[-800:]}"
        )
    summary: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return summary


def _parse(spool: Path, client: dict[str, Any]) -> tuple[list[ParsedRequest], list[Anchor]]:
    """Parses the spool, and adds to `client` what only the parsed streams show."""
    anchors = read_anchors(spool)
    clock = Clock(anchors)
    parsed = [parse_request(raw, clock) for raw in read_requests(spool)]
    lags_ns = sorted(lag for request in parsed for lag in request.user_lag_ns)
    client |= {
        "chunks": sum(len(request.chunk_offset_ns) for request in parsed),
        "shared_chunks": sum(sum(request.chunk_shared) for request in parsed),
        "unstamped_reads": sum(request.unstamped_reads for request in parsed),
        "user_lag_p50_ns": lags_ns[len(lags_ns) // 2] if lags_ns else None,
        "user_lag_p99_ns": lags_ns[int(len(lags_ns) * 0.99)] if lags_ns else None,
    }
    return parsed, anchors


def _cell_row(
    cell: Cell, seeds: Seeds, client: dict[str, Any], reasons: list[str]
) -> dict[str, Any]:
    sweep = cell.sweep
    return {
        "engine": cell.engine,
        "sweep": sweep.name,
        "repeat": cell.repeat,
        "position": cell.position,
        "endpoint": sweep.endpoint,
        "prompt_tokens": cell.prompt_tokens,
        "output_tokens": sweep.output_tokens,
        "in_flight": sweep.in_flight,
        "min_requests": sweep.min_requests,
        "min_duration_s": sweep.min_duration_s,
        "warmup_requests": sweep.warmup_requests,
        "seed_prompts": seeds.prompts,
        "seed_arrivals": seeds.arrivals,
        "seed_sampling": seeds.sampling,
        "started_ns": client.pop("started_ns"),
        "measured_ns": client.pop("measured_ns"),
        "ended_ns": client.pop("ended_ns"),
        "verdict": "INVALID" if reasons else "VALID",
        "reasons": reasons,
        "client": client,
    }


def _request_row(parsed: ParsedRequest, chosen: list[Prompt]) -> dict[str, Any]:
    row = record_of(parsed) | {"prompt_sha256": chosen[parsed.request_id - 1].sha256}
    for health in ("user_lag_ns", "unstamped_reads"):  # summed up in the cell's client
        del row[health]
    return row
