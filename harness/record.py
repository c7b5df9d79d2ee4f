"""Records an episode: engines in turn, cell by cell, into one DuckDB file.

The declared order is fixed, so a recording that was interrupted is continued by the same command:
the cells that are in are left alone, and those that are missing are recorded in a new session.
"""

import hashlib
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harness import __version__
from harness.cell import CellResult, Target, run_cell
from harness.engines import environments, external, models
from harness.engines import get as get_engine
from harness.engines.base import Engine
from harness.engines.process import RunningEngine
from harness.engines.redact import redact, redact_env
from harness.errors import HarnessError
from harness.experiment import Cell, Experiment, Tier, cells, find, load
from harness.recording.store import Recording, record_of
from harness.telemetry import machine
from harness.workload import Prompt, prompts, word_ids


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for. engine: one instead of all. url, model: a running server."""

    root: Path
    episode: str
    tier: str | None = None
    engine: str | None = None
    url: str | None = None
    model: str | None = None
    port: int = 0


@dataclass(slots=True)
class Session:
    """One start of the harness on one recording."""

    asked: Request
    experiment: Experiment
    tier: Tier
    recording: Recording
    session_id: int
    model: models.Model
    log: "LogBuffer"
    words: dict[str, int] | None


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

    def drain(self, run_id: int) -> list[dict[str, Any]]:
        with self._lock:
            lines, self._lines = self._lines, []
        return [{"run_id": run_id, "t_ns": t_ns, "line": line} for t_ns, line in lines]


def record(asked: Request, console: Console) -> dict[str, Any]:
    """Records what is missing. Returns the summary that the command prints as its last line."""
    experiment = load(find(asked.root, asked.episode) / "experiment.toml")
    tier = _tier(experiment, asked)
    engines = _engines(tier, asked)
    planned = cells(experiment, tier, engines)
    recording = _open(asked, experiment, tier, engines)
    try:
        done = recording.done()
        missing = [cell for cell in planned if cell.position not in done]
        if missing:
            console.print(
                f"Recording episode {asked.episode} on tier {tier.name}: "
                f"{len(missing)} of {len(planned)} cells into {recording.path.name}"
            )
            session = _begin(asked, experiment, tier, engines, recording)
            _record_cells(session, missing, len(planned), console)
        valid = recording.con.execute(
            "SELECT count(*) FILTER (verdict = 'VALID'), count(*) FROM cell"
        ).fetchone()
        assert valid is not None
        final = recording.finish()
    finally:
        recording.close()
    return {
        "recording": str(final.relative_to(asked.root)),
        "episode": asked.episode,
        "tier": tier.name,
        "engines": list(engines),
        "cells": valid[1],
        "valid": valid[0],
        "invalid": valid[1] - valid[0],
        "recorded_now": len(missing),
        "bytes": final.stat().st_size,
    }


def _tier(experiment: Experiment, asked: Request) -> Tier:
    name = asked.tier or machine.tier()
    if name not in experiment.tiers:
        raise HarnessError(
            f"{experiment.path}: declares no tier {name!r}; declared: {', '.join(experiment.tiers)}"
        )
    return experiment.tiers[name]


def _engines(tier: Tier, asked: Request) -> tuple[str, ...]:
    if asked.url:
        return ("external",)
    if asked.engine is None:
        return tier.engines
    if asked.engine not in tier.engines:
        raise HarnessError(f"ENGINE={asked.engine}: this tier declares {', '.join(tier.engines)}")
    return (asked.engine,)


def _open(
    asked: Request, experiment: Experiment, tier: Tier, engines: tuple[str, ...]
) -> Recording:
    """The unfinished recording of the same declaration, or a new one."""
    folder = asked.root / "data" / asked.episode
    for path in sorted(folder.glob(f"*-{tier.name}*.partial.duckdb")):
        recording = Recording(path)
        header = recording.header()
        if list(header["engines"]) == list(engines):
            if header["experiment_sha256"] == experiment.sha256:
                return recording
            recording.close()
            raise HarnessError(
                f"{path}: begun under another version of {experiment.path.name}, so it can't be "
                "continued. Restore that version, or remove the file to begin anew"
            )
        recording.close()
    stem = _free_stem(folder, f"{datetime.now(UTC):%Y-%m-%d}-{tier.name}", engines, tier)
    return Recording.create(
        folder / f"{stem}.partial.duckdb",
        recording_id=stem,
        episode=asked.episode,
        tier=tier.name,
        created_at=datetime.now(UTC),
        finished_at=None,
        experiment_toml=experiment.text,
        experiment_sha256=experiment.sha256,
        engines=list(engines),
    )


def _free_stem(folder: Path, stem: str, engines: tuple[str, ...], tier: Tier) -> str:
    if engines != tier.engines:
        stem = f"{stem}-{'-'.join(engines)}"
    taken, number = stem, 1
    while list(folder.glob(f"{taken}.*duckdb")):
        number += 1
        taken = f"{stem}-{number}"
    return taken


def _begin(
    asked: Request,
    experiment: Experiment,
    tier: Tier,
    engines: tuple[str, ...],
    recording: Recording,
) -> Session:
    """Sets up what is missing before anything is measured, and writes the session's rows."""
    if asked.url:
        model = models.external_model(asked.model or external.first_model(asked.url))
    else:
        for name in engines:
            environments.ensure(get_engine(name), tier.name, asked.root)
        model = models.ensure_model(asked.model or tier.model, asked.root)
    session_id = recording.next_id("session", "session_id")
    lock = asked.root / "requirements.lock"
    with recording.transaction():
        recording.insert(
            "session",
            [
                {
                    "session_id": session_id,
                    "started_at": datetime.now(UTC),
                    "started_ns": time.monotonic_ns(),
                    "boot_id": machine.boot_id(),
                    "harness_version": __version__,
                    "harness_commit": _commit(asked.root),
                    "lock_sha256": _sha256(lock) if lock.exists() else None,
                    "machine": machine.describe()
                    | {"engine_cores": list(tier.engine_cores), "client_core": tier.client_core},
                }
            ],
        )
        if (model.served_name,) not in recording.con.execute(
            "SELECT model_id FROM model"
        ).fetchall():
            recording.insert("model", [_model_row(model)])
    words = word_ids(model.tokenizer_path) if model.tokenizer_path else None
    return Session(asked, experiment, tier, recording, session_id, model, LogBuffer(), words)


def _model_row(model: models.Model) -> dict[str, Any]:
    return {
        "model_id": model.served_name,
        "source": model.source,
        "weights_sha256": model.weights_sha256,
        "weight_bytes": model.weight_bytes,
        "config": model.config,
    }


def _record_cells(session: Session, missing: list[Cell], total: int, console: Console) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("", total=total, completed=total - len(missing))
        for (repeat, name), group in groupby(missing, key=lambda cell: (cell.repeat, cell.engine)):
            progress.update(task, description=f"repeat {repeat} · {name} · starting")
            with _engine(session, name) as (run_id, target):
                for cell in group:
                    progress.update(
                        task,
                        description=f"repeat {repeat} · {name} · {cell.sweep.name} "
                        f"{cell.prompt_tokens} tokens",
                    )
                    result = run_cell(
                        cell,
                        session.tier,
                        session.experiment.seeds,
                        target,
                        _prompts(session, target, cell),
                    )
                    _commit_cell(session, run_id, result)
                    progress.advance(task)
                    if not console.is_terminal:  # no bar is drawn: a line a cell instead
                        console.print(_line(cell, total, result), soft_wrap=True, markup=False)


def _line(cell: Cell, total: int, result: CellResult) -> str:
    verdict = "; ".join([result.cell["verdict"], *result.cell["reasons"]])
    return (
        f"cell {cell.position} of {total}: {cell.engine} {cell.sweep.name} "
        f"{cell.prompt_tokens} tokens, repeat {cell.repeat}: {verdict}"
    )


def _prompts(session: Session, target: Target, cell: Cell) -> Iterator[Prompt]:
    """The cell's prompts; a server that adds tokens of its own gets as many words fewer."""
    levels = [(s.name, n) for s in session.tier.sweeps for n in s.prompt_tokens]
    added = 0
    if session.words is None or cell.sweep.endpoint == "chat":
        added = external.added_tokens(
            target.engine, target.base_url, target.served_name, cell.sweep.endpoint
        )
    if cell.prompt_tokens <= added:
        raise HarnessError(
            f"{target.engine.name}: adds {added} tokens to every prompt at "
            f"{cell.sweep.endpoint}, so a prompt of {cell.prompt_tokens} can't be sent"
        )
    return prompts(
        seed=session.experiment.seeds.prompts,
        repeat=cell.repeat,
        level=levels.index((cell.sweep.name, cell.prompt_tokens)),
        n_tokens=cell.prompt_tokens - added,
        ids=session.words,
    )


@contextmanager
def _engine(session: Session, name: str) -> Iterator[tuple[int, Target]]:
    """Starts an engine, records its run, and stops it, whatever happens in between."""
    engine, asked, tier = get_engine(name), session.asked, session.tier
    recording, log, model = session.recording, session.log, session.model
    if asked.url:
        run_id = _begin_run(session, engine, [], {}, external.version(asked.url))
        yield run_id, Target(engine, asked.url, model.served_name, lambda: True, lambda: [])
        recording.update_run(run_id, stopped_ns=time.monotonic_ns())
        return
    launch = engine.launch(
        model_dir=model.path,
        served_name=model.served_name,
        port=asked.port,
        tier=tier.name,
        max_model_tokens=tier.max_model_tokens,
        flags=tier.flags.get(name, ()),
        root=asked.root,
    )
    log.kv_pool_tokens = None
    running = RunningEngine(
        engine,
        launch,
        tier.engine_cores,
        lambda t_ns, line: log.add(engine, t_ns, line),
        asked.root,
    )
    run_id = _begin_run(session, engine, redact(list(launch.argv)), redact_env(launch.env), None)
    note = None
    try:
        running.start()
        running.wait_ready()
        recording.update_run(
            run_id,
            ready_ns=time.monotonic_ns(),
            version=engine.version(launch, running.base_url),
            kv_pool_tokens=log.kv_pool_tokens,
        )
        yield (
            run_id,
            Target(engine, running.base_url, model.served_name, running.alive, running.pids),
        )
    except HarnessError as error:
        note = redact(str(error))
        raise
    finally:
        running.stop()
        with recording.transaction():
            recording.insert("log_line", log.drain(run_id))
            recording.update_run(run_id, stopped_ns=time.monotonic_ns(), exit_note=note)


def _begin_run(
    session: Session, engine: Engine, argv: list[str], env: dict[str, str], version: str | None
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
                    "version": version,
                    "model_id": session.model.served_name,
                    "argv": argv,
                    "env": env,
                    "lock_sha256": _sha256(lock) if lock else None,
                    "cores": list(session.tier.engine_cores) or None,
                    "started_ns": time.monotonic_ns(),
                }
            ],
        )
    return run_id


def _commit_cell(session: Session, run_id: int, result: CellResult) -> None:
    recording, telemetry = session.recording, result.telemetry
    cell_id = recording.next_id("cell", "cell_id")
    ids = {"cell_id": cell_id}
    both = ids | {"run_id": run_id}
    with recording.transaction():
        recording.insert("cell", [result.cell | both | {"session_id": session.session_id}])
        recording.insert("request", [row | ids for row in result.requests])
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
        recording.insert("log_line", session.log.drain(run_id))


def _commit(root: Path) -> str | None:
    """The checkout's commit, marked where files differ; None outside a checkout."""
    git = ["git", "-C", str(root)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
        # data/ changes while recording, and is no part of the program.
        dirty = subprocess.run(
            [*git, "status", "--porcelain", "--", ".", ":!data"], capture_output=True, text=True
        )
    except FileNotFoundError:
        return None
    if head.returncode != 0:
        return None
    return head.stdout.strip() + ("-dirty" if dirty.stdout.strip() else "")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
