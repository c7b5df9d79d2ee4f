"""Records an episode: engines in turn, cell by cell, into one DuckDB file.

The declared order is fixed, so a recording that was interrupted is continued by the same command:
the cells that are in are left alone, and those that are missing are recorded in a new session.
"""

import hashlib
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harness import __version__
from harness.cell import Target, run_cell
from harness.engines import adapters, environments, external, models
from harness.engines import get as get_engine
from harness.errors import HarnessError
from harness.experiment import Experiment, Tier, find, load
from harness.load.ceiling import newest_calibration
from harness.rates import rate_per_s
from harness.recording.store import Recording, sha256
from harness.requirements import require_able, require_cores, require_no_secrets
from harness.schedule import Cell, cells
from harness.session import LogBuffer, Request, Session, commit_cell, engine_run
from harness.telemetry import machine
from harness.worklist import Worklist
from harness.workload import word_ids


def record(
    asked: Request, console: Console, enter: Callable[[Path], object] = lambda path: None
) -> dict[str, Any]:
    """Records what is missing. Returns the summary that the command prints as its last line.

    enter: is given the finished file, to list it in the manifest.
    """
    experiment = load(find(asked.root, asked.episode) / "experiment.toml")
    tier = _tier(experiment, asked)
    engines = _engines(tier, asked)
    planned = cells(experiment, tier, engines)
    require_cores(experiment, tier)
    require_no_secrets(experiment, tier, engines)
    require_able(experiment, tier, planned)
    model = _set_up(asked, tier, engines)
    recording = _open(asked, experiment, tier, engines)
    try:
        _require_same_model(recording, model)
        done = recording.done()
        missing = [cell for cell in planned if cell.position not in done]
        if missing:
            console.print(
                f"Recording episode {asked.episode} on tier {tier.name}: "
                f"{len(missing)} of {len(planned)} cells into {recording.path.name}",
                soft_wrap=True,
                highlight=False,
            )
            session = _begin(asked, experiment, tier, recording, model)
            free = os.sched_getaffinity(0)
            os.sched_setaffinity(0, {tier.client_core})  # telemetry must not run beside the engine
            try:
                _record_cells(session, missing, len(planned), console)
            finally:
                os.sched_setaffinity(0, free)
        ((valid, recorded),) = recording.con.execute(
            "SELECT count(*) FILTER (verdict = 'VALID'), count(*) FROM cell"
        ).fetchall()
        final = recording.finish(enter)
    finally:
        recording.close()
    return {
        "recording": str(final.relative_to(asked.root)),
        "episode": asked.episode,
        "tier": tier.name,
        "engines": list(engines),
        "cells": recorded,
        "valid": valid,
        "invalid": recorded - valid,
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


def _set_up(asked: Request, tier: Tier, engines: tuple[str, ...]) -> models.Model:
    """Everything that a recording needs, before anything is begun."""
    if asked.url:
        return models.external_model(asked.url, asked.model or external.first_model(asked.url))
    for name in dict.fromkeys(tier.variant(variant).engine for variant in engines):
        environments.ensure(get_engine(name), tier.name, asked.root)
    model = models.ensure_model(asked.model or tier.model, asked.root)
    for name in engines:
        adapters.with_models(tier.variant(name).flags, model, asked.root)
    return model


def _open(
    asked: Request, experiment: Experiment, tier: Tier, engines: tuple[str, ...]
) -> Recording:
    """The unfinished recording of the same declaration, or a new one."""
    folder = asked.root / "data" / asked.episode
    for path in sorted(folder.glob(f"*-{tier.name}*.partial.duckdb")):
        recording = Recording(path)
        header = recording.header()
        if list(header["engines"]) != list(engines):
            recording.close()
        elif header["experiment_sha256"] == experiment.sha256:
            return recording
        elif not recording.done():
            recording.close()
            path.unlink()  # nothing had been recorded under the older declaration
        else:
            recording.close()
            raise HarnessError(
                f"{path}: begun under another version of {experiment.path.name}, so it can't be "
                "continued. Restore that version, or remove the file to begin anew"
            )
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


def _require_same_model(recording: Recording, model: models.Model) -> None:
    """A recording that is continued must go on with the model, or the server, it began with."""
    known = recording.con.execute("SELECT model_id, source, weights_sha256 FROM model").fetchall()
    now = (model.served_name, model.source, model.weights_sha256)
    if known and now not in known:
        raise HarnessError(
            f"{recording.path}: begun with {known[0][0]} ({known[0][1]}), so it can't be continued "
            f"with {model.served_name} ({model.source}). Name that one, or remove the file"
        )


def _begin(
    asked: Request,
    experiment: Experiment,
    tier: Tier,
    recording: Recording,
    model: models.Model,
) -> Session:
    """Writes the session's rows."""
    session_id = recording.next_id("session", "session_id")
    lock = asked.root / "requirements.lock"
    calibration = newest_calibration(asked.root, machine.describe())
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
                    "harness_commit": commit(asked.root),
                    "lock_sha256": sha256(lock) if lock.exists() else None,
                    "calibration": calibration,
                    "machine": machine.describe()
                    | {"engine_cores": list(tier.engine_cores), "client_core": tier.client_core},
                }
            ],
        )
        if recording.con.execute("SELECT model_id FROM model").fetchall() == []:
            recording.insert("model", [_model_row(model)])
    words = word_ids(model.tokenizer_path) if model.tokenizer_path else None
    seeds = experiment.seeds
    if asked.url:
        # It runs on between our starts, so the same prompts would find its cache warm.
        salt = f"{seeds.prompts}:{recording.header()['recording_id']}:{session_id}"
        seeds = replace(seeds, prompts=int(hashlib.sha256(salt.encode()).hexdigest()[:15], 16))
    return Session(
        asked,
        experiment,
        tier,
        seeds,
        recording,
        session_id,
        model,
        LogBuffer(),
        words,
        calibration,
    )


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
        for (repeat, name), group in groupby(missing, key=lambda cell: (cell.repeat, cell.variant)):
            progress.update(task, description=f"repeat {repeat} · {name} · starting")
            with engine_run(session, name) as (run_id, target):
                for cell in group:
                    what = f"{name} {cell.level}, repeat {repeat}"
                    progress.update(task, description=what)
                    work, remote = _worklist(session, target, cell), session.asked.remote
                    if cell.level.sweep.reset_cache:
                        external.reset_cache(target.engine, target.base_url)
                    with run_cell(work, target, remote) as result:
                        reasons = commit_cell(session, run_id, result)
                    progress.advance(task)
                    if not console.is_terminal:  # no bar is drawn: a line a cell instead
                        verdict = "; ".join(["INVALID", *reasons]) if reasons else "VALID"
                        line = f"cell {cell.position} of {total}: {what}: {verdict}"
                        console.print(line, soft_wrap=True, markup=False, highlight=False)


def _worklist(session: Session, target: Target, cell: Cell) -> Worklist:
    """The cell's requests. Raises HarnessError where the level can't be reached."""
    level, added = cell.level, 0
    if session.words is None or level.sweep.endpoint == "chat":
        added = external.added_tokens(
            target.engine, target.base_url, target.served_name, level.sweep.endpoint
        )
    shortest = min([level.prompt_tokens, *(prompt for prompt, _, _ in level.sweep.mix)])
    if shortest <= added:
        raise HarnessError(
            f"{target.engine.name}: adds {added} tokens to every prompt at "
            f"{level.sweep.endpoint}, so a prompt of {shortest} can't be sent"
        )
    return Worklist(
        cell=cell,
        tier=session.tier,
        seeds=session.seeds,
        rate_per_s=rate_per_s(session.recording, session.tier, cell),
        added_tokens=added,
        words=session.words,
        folder=session.experiment.path.parent,
    )


def commit(root: Path) -> str | None:
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
