"""Records an episode into one DuckDB file: engines in turn, cell by cell, then jobs and attempts.

The declared order is fixed, so a recording that was interrupted is continued by the same command:
what is in is left alone, and what is missing is recorded in a new session.
"""

import hashlib
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from harness import __version__, rounds
from harness.engines import adapters, environments, external, models
from harness.engines import get as get_engine
from harness.errors import HarnessError
from harness.experiment import Experiment, Tier, find, load
from harness.load.ceiling import newest_calibration
from harness.recording.store import Recording, sha256
from harness.requirements import (
    require_able,
    require_cores,
    require_files,
    require_no_secrets,
)
from harness.schedule import cells
from harness.session import LogBuffer, Request, Session
from harness.telemetry import machine
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
    if engines != tier.engines:  # jobs and attempts belong to a recording of all
        tier = replace(tier, jobs=(), attempts=())
    planned = cells(experiment, tier, engines)
    require_cores(experiment, tier, engines)
    require_no_secrets(experiment, tier, engines)
    require_files(experiment, tier)
    require_able(experiment, tier, planned)
    known = _set_up(asked, tier, engines)
    recording = _open(asked, experiment, tier, engines)
    try:
        _require_same_models(recording, known)
        todo = rounds.missing(recording, tier, planned)
        if todo.count:
            console.print(
                f"Recording episode {asked.episode} on tier {tier.name}: "
                f"{len(todo.cells)} of {len(planned)} cells, {len(todo.jobs)} runs of jobs, "
                f"{len(todo.attempts)} attempts into {recording.path.name}",
                soft_wrap=True,
                highlight=False,
            )
            session = _begin(asked, experiment, tier, recording, known)
            free = os.sched_getaffinity(0)
            os.sched_setaffinity(0, {tier.client_core})  # telemetry must not run beside the engine
            try:
                rounds.run(session, todo, console)
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
        "recorded_now": len(todo.cells),
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


def _set_up(asked: Request, tier: Tier, engines: tuple[str, ...]) -> dict[str, models.Model]:
    """Everything that a recording needs, before anything is begun; its models as in Session."""
    if asked.url:
        name = asked.model or external.first_model(asked.url)
        return {"": models.external_model(asked.url, name)}
    variants = [*map(tier.variant, engines), *tier.attempts]
    for name in dict.fromkeys(variant.engine for variant in variants):
        environments.ensure(get_engine(name), tier.name, asked.root)
    known = {"": models.ensure_model(asked.model or tier.model, asked.root)}
    for name in dict.fromkeys(variant.model for variant in variants if variant.model):
        known[name] = models.ensure_model(name, asked.root)
    for model in known.values():
        if model.tokenizer_path:
            word_ids(model.tokenizer_path)
    for variant in variants:
        words = (*variant.flags, *variant.env.values())
        adapters.with_models(words, known[variant.model], asked.root)
    for job in tier.jobs:
        environments.python_of(job.environment, job.name, asked.root)
        adapters.with_models(job.args, known[""], asked.root)
    return known


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


def _require_same_models(recording: Recording, known: dict[str, models.Model]) -> None:
    """A recording that is continued must go on with the models, or the server, it began with."""
    rows = recording.con.execute("SELECT model_id, source, weights_sha256 FROM model").fetchall()
    for model in known.values():
        if rows and (model.served_name, model.source, model.weights_sha256) not in rows:
            begun = next((row for row in rows if row[0] == model.served_name), rows[0])
            raise HarnessError(
                f"{recording.path}: begun with {begun[0]} ({begun[1]}), so it can't be continued "
                f"with {model.served_name} ({model.source}). Name that one, or remove the file"
            )


def _begin(
    asked: Request,
    experiment: Experiment,
    tier: Tier,
    recording: Recording,
    known: dict[str, models.Model],
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
            each = {model.served_name: _model_row(model) for model in known.values()}
            recording.insert("model", list(each.values()))
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
        known,
        LogBuffer(),
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
