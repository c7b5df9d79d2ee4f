"""One start of the harness on one recording: its engines' runs and its finished cells as rows."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from harness.cell import CellResult, Target
from harness.engines import adapters, environments, external
from harness.engines import get as get_engine
from harness.engines.base import Engine
from harness.engines.models import Model
from harness.engines.process import READY_TIMEOUT_S, RunningEngine
from harness.engines.redact import redact, redact_env
from harness.errors import HarnessError
from harness.experiment import Experiment, Seeds, Tier, Variant
from harness.load.ceiling import ceiling_share
from harness.load.launch import Remote
from harness.recording import verdict
from harness.recording.store import Recording, record_of, sha256

# Variables of the shell that change what an engine does: they reach it, so they are recorded.
SHAPING = ("VLLM_", "SGLANG_", "CUDA_", "NCCL_", "OMP_", "MKL_", "HF_", "TORCH", "PYTORCH_")

BATCH_ROWS = 5_000  # of requests in memory at a time


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for. engine: one instead of all. url, model: a running server.
    remote: load machines beside this one."""

    root: Path
    episode: str
    tier: str | None = None
    engine: str | None = None
    url: str | None = None
    model: str | None = None
    port: int = 0
    remote: Remote | None = None


@dataclass(slots=True)
class Session:
    """One start of the harness on one recording."""

    asked: Request
    experiment: Experiment
    tier: Tier
    seeds: Seeds
    recording: Recording
    session_id: int
    models: dict[str, Model]  # by Variant.model: "" is the tier's own
    log: "LogBuffer"
    calibration: dict[str, Any] | None


class LogBuffer:
    """Log lines of the engine in flight, from its reader thread to the next transaction."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: list[tuple[int, str]] = []
        self.kv_pool_tokens: int | None = None

    def add(self, engine: Engine, t_ns: int, line: str) -> None:
        pool = engine.kv_pool_tokens(line)
        with self._lock:
            self._lines.append((t_ns, redact(line)))
            if pool is not None:
                self.kv_pool_tokens = pool

    @contextmanager
    def drained(self, run_id: int) -> Iterator[list[dict[str, Any]]]:
        """The lines so far as rows; they are forgotten once the block has ended well."""
        with self._lock:
            lines = list(self._lines)
        yield [{"run_id": run_id, "t_ns": t_ns, "line": line} for t_ns, line in lines]
        with self._lock:
            del self._lines[: len(lines)]


@contextmanager
def engine_run(
    session: Session, name: str, variant: Variant, timeout_s: float = READY_TIMEOUT_S
) -> Iterator[tuple[int, Target]]:
    """Starts a variant under a name, records its run, and stops it, whatever happens in between.

    Raises HarnessError where it is not ready within timeout_s; the run is recorded even so.
    """
    asked, tier = session.asked, session.tier
    engine = get_engine(variant.engine)
    recording, log, model = session.recording, session.log, session.models[variant.model]
    if asked.url:
        version = external.version(asked.url)
        run_id = _begin_run(session, engine, name, model, [], {}, (), version)
        yield (
            run_id,
            Target(engine, asked.url, model.served_name, lambda: True, lambda: [], lambda: ""),
        )
        recording.update_run(run_id, stopped_ns=time.monotonic_ns())
        return
    values = adapters.with_models(tuple(variant.env.values()), model, asked.root)
    launch = engine.launch(
        model_dir=model.path,
        served_name=model.served_name,
        port=asked.port,
        tier=tier.name,
        max_model_tokens=tier.max_model_tokens,
        flags=adapters.with_models(variant.flags, model, asked.root),
        root=asked.root,
        dtype=variant.dtype or None,
        env=dict(zip(variant.env, values, strict=True)),
    )
    log.kv_pool_tokens = None
    cores = tier.cores_of(variant)
    running = RunningEngine(
        engine,
        launch,
        cores,
        lambda t_ns, line: log.add(engine, t_ns, line),
        asked.root,
    )
    env = {k: v for k, v in os.environ.items() if k.startswith(SHAPING)} | dict(launch.env)
    argv = redact(list(launch.argv))
    version = engine.version(launch, running.base_url)
    run_id = _begin_run(session, engine, name, model, argv, redact_env(env), cores, version)
    note = None
    try:
        running.start()
        running.wait_ready(timeout_s)
        recording.update_run(
            run_id,
            ready_ns=time.monotonic_ns(),
            kv_pool_tokens=log.kv_pool_tokens,
        )
        yield (
            run_id,
            Target(
                engine,
                running.base_url,
                model.served_name,
                running.alive,
                running.pids,
                running.exit_note,
            ),
        )
    except HarnessError as error:
        note = redact(str(error))
        raise
    finally:
        try:
            running.stop()
        finally:
            with log.drained(run_id) as lines, recording.transaction():
                recording.insert("log_line", lines)
                recording.update_run(run_id, stopped_ns=time.monotonic_ns(), exit_note=note)


def probe(session: Session, run_id: int, target: Target) -> None:
    """Asks the declared question and records the answer, and a fault where it is a wrong one."""
    question, word = session.tier.probe
    said = external.answer(target.engine, target.base_url, target.served_name, question)
    fault = None if word in said else f"wrong_answer: asked {question!r}, answered {said!r}"
    session.recording.update_run(run_id, probe_answer=said, fault=fault)


def _begin_run(
    session: Session,
    engine: Engine,
    variant: str,
    model: Model,
    argv: list[str],
    env: dict[str, str],
    cores: tuple[int, ...],
    version: str | None,
) -> int:
    run_id = session.recording.next_id("engine_run", "run_id")
    lock = environments.lock_path(engine, session.tier.name)
    with session.recording.transaction():
        session.recording.insert(
            "engine_run",
            [
                {
                    "run_id": run_id,
                    "session_id": session.session_id,
                    "engine": engine.name,
                    "variant": variant,
                    "version": version,
                    "model_id": model.served_name,
                    "argv": argv,
                    "env": env,
                    "lock_sha256": sha256(lock) if lock else None,
                    "cores": list(cores) or None,
                    "started_ns": time.monotonic_ns(),
                }
            ],
        )
    return run_id


def commit_cell(session: Session, run_id: int, result: CellResult) -> list[str]:
    """Writes a cell, judges it by what was written, and returns the reasons against it."""
    recording, telemetry = session.recording, result.telemetry
    cell_id = recording.next_id("cell", "cell_id")
    ids = {"cell_id": cell_id}
    both = ids | {"run_id": run_id}
    with session.log.drained(run_id) as lines, recording.transaction():
        for rows in _batches(result.requests):
            recording.insert("request", [row | ids for row in rows])
        client = result.cell["client"]
        client["ceiling_frac"] = _ceiling_frac(session, result.cell)
        recording.insert("cell", [result.cell | both | {"session_id": session.session_id}])
        recording.insert("clock_anchor", [record_of(anchor) | ids for anchor in result.anchors])
        recording.insert(
            "engine_metric",
            [
                both | {"t_ns": t_ns, "name": name, "labels": labels, "value": value}
                for t_ns, name, labels, value in telemetry.metric_rows
            ],
        )
        recording.insert(
            "scrape", [both | {"t_ns": t, "took_ns": took} for t, took in telemetry.scrapes]
        )
        recording.insert("host_sample", [record_of(sample) | ids for sample in telemetry.hosts])
        recording.insert("gpu_sample", [record_of(sample) | ids for sample in telemetry.gpus])
        recording.insert("log_line", lines)
        return verdict.pronounce(recording.con, cell_id)


def _ceiling_frac(session: Session, cell: dict[str, Any]) -> float | None:
    """Share of the client's calibrated ceiling that the cell used; None where not calibrated."""
    if session.calibration is None:
        return None
    seconds = (cell["ended_ns"] - cell["measured_ns"]) / 1e9
    chunks_per_s = cell["client"]["chunks"] / seconds
    requests_per_s = cell["client"]["requests"] / seconds
    return ceiling_share(session.calibration, cell["processes"], chunks_per_s, requests_per_s)


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while batch := list(islice(rows, BATCH_ROWS)):
        yield batch
