"""Runs one cell against a ready engine and gives back its rows.

The load runs in processes of its own, on the client's core; this process samples telemetry while
it waits and parses what was received only after the measured phase is over. Nothing here grows with
the number of requests but 24 bytes a request: a cell may have a million. Where prompts share tokens
by plan it is the words of each prompt and some hundred bytes: such a cell has thousands at most.
"""

import json
import os
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.engines.base import Engine
from harness.errors import HarnessError
from harness.experiment import Tier
from harness.load.clock import Anchor, Clock
from harness.load.launch import LoadResult, Remote
from harness.load.launch import run as run_load
from harness.load.parse import ParsedRequest, parse_request
from harness.load.plan import LoadPlan, PlannedRequest
from harness.load.spool import read_anchors, read_requests
from harness.recording.store import record_of
from harness.sweep import Sweep
from harness.telemetry.sampler import Sampler, Telemetry
from harness.worklist import Work, Worklist

NO_MORE = dict.fromkeys(("shared_prefix_tokens", "salt", "adapter", "text_id", "extra", "expected"))
NO_LIMIT = (1 << 62) - 1  # an open loop ends with its plan


@dataclass(frozen=True, slots=True)
class Target:
    """The engine a cell runs against.

    alive: whether its process still runs. pids: all of its processes. exit_note: how it ended.
    """

    engine: Engine
    base_url: str
    served_name: str
    alive: Callable[[], bool]
    pids: Callable[[], list[int]]
    exit_note: Callable[[], str]


@dataclass(slots=True)
class CellResult:
    """Rows by table, ready for the recording; each still lacks its ids.

    requests is read once and in order; `cell` is complete only after that.
    """

    cell: dict[str, Any]
    requests: Iterator[dict[str, Any]]
    anchors: list[Anchor]
    telemetry: Telemetry


@dataclass(slots=True)
class _Planned:
    """What the answers are joined with: by request, from 1. Session and turn are 0 for none.

    more: what only sweeps have whose prompts share tokens or are texts, by request.
    """

    hashes: "array[int]" = field(default_factory=lambda: array("Q"))
    prompt_tokens: "array[int]" = field(default_factory=lambda: array("I"))
    output_tokens: "array[int]" = field(default_factory=lambda: array("I"))
    sessions: "array[int]" = field(default_factory=lambda: array("I"))
    turns: "array[int]" = field(default_factory=lambda: array("I"))
    more: dict[int, dict[str, Any]] = field(default_factory=dict)

    def add(self, work: Work, added_tokens: int) -> int:
        self.hashes.append(work.prompt.hash)
        self.prompt_tokens.append(work.prompt.n_tokens + added_tokens)
        self.output_tokens.append(work.output_tokens)
        self.sessions.append(work.session or 0)
        self.turns.append(work.turn or 0)
        if work.shared_prefix_tokens is not None or work.salt or work.adapter or work.text_id:
            self.more[len(self.hashes)] = {
                "shared_prefix_tokens": work.shared_prefix_tokens,
                "salt": work.salt or None,
                "adapter": work.adapter or None,
                "text_id": work.text_id or None,
                "extra": work.extra,
                "expected": work.expected or None,
            }
        return len(self.hashes)

    def of(self, request_id: int) -> dict[str, Any]:
        return self.more.get(request_id, NO_MORE) | {
            "session": self.sessions[request_id - 1] or None,
            "turn": self.turns[request_id - 1] or None,
            "prompt_hash": self.hashes[request_id - 1],
            "asked_prompt_tokens": self.prompt_tokens[request_id - 1],
            "asked_output_tokens": self.output_tokens[request_id - 1],
        }


@contextmanager
def run_cell(
    worklist: Worklist, target: Target, remote: Remote | None = None
) -> Iterator[CellResult]:
    """Runs the load and gives its rows for as long as the block lasts.

    Raises HarnessError where the engine or the load process died: such a cell is not kept.
    """
    sweep, tier = worklist.cell.level.sweep, worklist.tier
    planned = _Planned()
    closed = sweep.load == "closed"
    with tempfile.TemporaryDirectory(prefix="token-by-token-") as folder:
        plan = LoadPlan(
            url=target.engine.endpoint_url(target.base_url, sweep.endpoint),
            in_flight=_connections(worklist),
            min_requests=worklist.cell.level.min_requests if closed else NO_LIMIT,
            min_duration_s=sweep.min_duration_s if closed else 0.0,
            timeout_s=tier.request_timeout_s,
            cores=_client_cores(tier, worklist.cell.variant),
            spool_path=str(Path(folder) / "spool"),
        )
        requests = _requests(worklist, target, planned)
        metrics_url = target.engine.metrics_url(target.base_url)
        with Sampler(metrics_url, sweep.metrics_hz, target.pids) as sampler:
            load = _load(plan, requests, sweep.processes, Path(folder), target, remote)
        client = load.summary | {"telemetry_faults": sampler.telemetry.faults}
        client["planned"] = len(planned.hashes) - sweep.warmup_requests
        yield CellResult(
            cell=_cell_row(worklist, client),
            requests=_request_rows(load.spools, planned, client, target),
            anchors=[anchor for spool in load.spools for anchor in read_anchors(spool)],
            telemetry=sampler.telemetry,
        )


def _load(
    plan: LoadPlan,
    requests: Iterator[PlannedRequest],
    processes: int,
    folder: Path,
    target: Target,
    remote: Remote | None,
) -> LoadResult:
    try:
        return run_load(plan, requests, processes, folder, target.alive, remote)
    except HarnessError:
        if target.alive():
            raise
        died = f"{target.engine.name}: died while it was loaded, {target.exit_note()}"
        raise HarnessError(died) from None


def _client_cores(tier: Tier, variant: str) -> tuple[int, ...]:
    """The declared one first; where there are more load processes, others that the engine has
    not."""
    taken = {tier.client_core, *tier.cores_of(tier.variant(variant))}
    return (tier.client_core, *(c for c in range(os.cpu_count() or 1) if c not in taken))


def _connections(worklist: Worklist) -> int:
    level = worklist.cell.level
    return level.in_flight or level.sweep.connections


def _requests(worklist: Worklist, target: Target, planned: _Planned) -> Iterator[PlannedRequest]:
    sweep, engine = worklist.cell.level.sweep, target.engine
    for work in worklist:
        request_id = planned.add(work, worklist.added_tokens)
        body = engine.request_body(
            endpoint=sweep.endpoint,
            prompt_ids=work.prompt.ids,
            prompt_text=work.prompt.text,
            output_tokens=work.output_tokens,
            seed=worklist.seeds.sampling + (request_id if sweep.temperature else 0),
            served_name=target.served_name,
            logprobs=sweep.logprobs,
            salt=work.salt,
            adapter=work.adapter,
        )
        body = shaped(engine, sweep, body) | (work.extra or {})
        if sweep.priorities and work.phase == "measured":
            number = request_id - sweep.warmup_requests - 1
            body["priority"] = sweep.priorities[number % len(sweep.priorities)]
        yield PlannedRequest(
            request_id=request_id,
            phase=work.phase,
            body=json.dumps(body),
            due_ns=work.due_ns,
            session=work.session,
            think_ns=work.think_ns,
        )


def shaped(engine: Engine, sweep: Sweep, body: dict[str, Any]) -> dict[str, Any]:
    """The body with its length and its sampling as the sweep asks for them. Raises HarnessError
    where the engine can't."""
    if sweep.length_by == "min_tokens":
        body = engine.with_min_tokens(body)
    elif sweep.length_by == "eos":
        body = engine.with_own_end(body)
    return engine.with_temperature(body, sweep.temperature) if sweep.temperature else body


def _request_rows(
    spools: tuple[Path, ...], planned: _Planned, client: dict[str, Any], target: Target
) -> Iterator[dict[str, Any]]:
    """Parses the spools one request at a time, and adds to `client` what only the streams show."""
    lags_us: Counter[int] = Counter()
    seen: Counter[str] = Counter()
    for process, spool in enumerate(spools):
        clock = Clock(read_anchors(spool))
        for raw in read_requests(spool):
            parsed = parse_request(raw, clock)
            lags_us.update(lag_ns // 1000 for lag_ns in parsed.user_lag_ns)
            seen["requests"] += 1
            seen["measured"] += parsed.phase == "measured"
            seen["refused"] += parsed.error == "connection refused"
            if parsed.phase == "measured":
                seen["chunks"] += len(parsed.chunk_shared)
                seen["shared_chunks"] += sum(parsed.chunk_shared[:-1])  # the last: with the usage
            seen["unstamped_reads"] += parsed.unstamped_reads
            yield _row(parsed) | planned.of(parsed.request_id) | {"process": process}
    if seen["measured"] != client["requests"]:
        raise HarnessError(
            f"the load process sent {client['requests']} measured requests and its spool holds "
            f"{seen['measured']}: the cell is torn and not kept. Run the same command again"
        )
    if seen["requests"] and seen["refused"] == seen["requests"]:
        raise HarnessError(f"{target.base_url}: refuses connections, so nothing was measured")
    client |= {key: seen[key] for key in ("chunks", "shared_chunks", "unstamped_reads")}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        client[f"user_lag_{name}_ns"] = _quantile_us(lags_us, share)


def _row(parsed: ParsedRequest) -> dict[str, Any]:
    row = record_of(parsed)
    for health in ("user_lag_ns", "unstamped_reads"):  # summed up in the cell's client
        del row[health]
    offsets_us = [round(offset_ns / 1000) for offset_ns in row.pop("chunk_offset_ns")]
    # A read that the wall clock of another core stamped earlier is no gap below zero.
    row["chunk_gap_us"] = [max(then - before, 0) for before, then in pairwise(offsets_us)]
    return row


def _quantile_us(counted: Counter[int], share: float) -> int | None:
    """Nearest-rank quantile of microseconds in buckets, in ns; None where there are none."""
    wanted, passed = share * counted.total(), 0
    for value_us in sorted(counted):
        passed += counted[value_us]
        if passed >= wanted:
            return value_us * 1000
    return None


def _cell_row(worklist: Worklist, client: dict[str, Any]) -> dict[str, Any]:
    cell, level, sweep = worklist.cell, worklist.cell.level, worklist.cell.level.sweep
    return {
        "variant": cell.variant,
        "engine": worklist.tier.variant(cell.variant).engine,
        "sweep": sweep.name,
        "repeat": cell.repeat,
        "position": cell.position,
        "endpoint": sweep.endpoint,
        "prompt_tokens": level.prompt_tokens,
        "output_tokens": sweep.output_tokens,
        "added_tokens": worklist.added_tokens,
        "load": sweep.load,
        "in_flight": level.in_flight,
        "rate_per_s": worklist.rate_per_s,
        "burstiness": sweep.burstiness if sweep.load == "gamma" else None,
        "capacity_frac": level.capacity_frac,
        "connections": _connections(worklist),
        "processes": len(client["processes"]),
        "cold": sweep.cold,
        "shared_tokens": level.shared_tokens,
        "shared_at": None if level.shared_tokens is None else sweep.shared_at,
        "documents": None if level.shared_tokens is None else sweep.documents,
        "reset_cache": sweep.reset_cache,
        "front_cap": sweep.front_cap,
        "search_step": level.search_step,
        "kind": level.kind,
        "extra": level.extra,
        "temperature": sweep.temperature,
        "ends_itself": sweep.length_by == "eos",
        "min_requests": level.min_requests,
        "min_duration_s": sweep.min_duration_s,
        "warmup_requests": sweep.warmup_requests,
        "seed_prompts": worklist.seeds.prompts,
        "seed_arrivals": worklist.seeds.arrivals,
        "seed_sampling": worklist.seeds.sampling,
        "started_ns": client.pop("started_ns"),
        "measured_ns": client.pop("measured_ns"),
        "ended_ns": client.pop("ended_ns"),
        "verdict": "INVALID",  # until it is judged, in the same transaction
        "reasons": [],
        "client": client,
    }
