"""What must hold before a recording is begun, so that nothing known beforehand stops a long run."""

import os
from collections.abc import Sequence

from harness import jobs_run, texts
from harness.cell import shaped
from harness.engines import environments, external
from harness.engines import get as get_engine
from harness.engines.base import Engine
from harness.engines.redact import redact, redact_env
from harness.errors import HarnessError
from harness.experiment import Experiment, Job, Tier, Variant
from harness.rates import capacity_variant
from harness.schedule import Cell
from harness.sweep import Sweep


def require_cores(experiment: Experiment, tier: Tier, engines: Sequence[str]) -> None:
    """That this process may use the cores which the tier pins to."""
    pinned: list[Variant | Job] = [*map(tier.variant, engines), *tier.attempts, *tier.jobs]
    wanted = {tier.client_core, *(core for each in pinned for core in tier.cores_of(each))}
    lacking = wanted - os.sched_getaffinity(0)
    if lacking:
        raise HarnessError(
            f"{experiment.path}: tier {tier.name} pins to core {min(lacking)}, which this process "
            f"may not use; it has {sorted(os.sched_getaffinity(0))}"
        )


def require_no_secrets(experiment: Experiment, tier: Tier, engines: Sequence[str]) -> None:
    """That no flag or variable of any variant or attempt holds a secret."""
    named = {name: tier.variant(name) for name in engines}
    named |= {attempt.name: attempt for attempt in tier.attempts}
    for name, variant in named.items():
        flags = list(variant.flags)
        for what, secret in (
            ("flags", redact(flags) != flags),
            ("env", redact_env(variant.env) != variant.env),
        ):
            if secret:
                raise HarnessError(
                    f"{experiment.path}: the {what} of {name} in tier.{tier.name} hold a secret, "
                    "and the declaration becomes part of the recording: pass it in the shell's "
                    "environment"
                )


def require_files(experiment: Experiment, tier: Tier) -> None:
    """That the scripts of jobs and the texts of sweeps are there, and fit."""
    for sweep in tier.sweeps:
        if sweep.texts:
            texts.of_sweep(sweep, experiment.path.parent)
    for job in tier.jobs:
        if not (jobs_run.SCRIPTS / job.script).is_file():
            raise HarnessError(
                f"{experiment.path}: job {job.name!r}: no script {job.script!r} in harness/jobs"
            )
        if job.environment:
            environments.environment_lock(job.environment, f"{experiment.path}: job {job.name!r}")


def require_able(experiment: Experiment, tier: Tier, planned: Sequence[Cell]) -> None:
    """That each engine can do what its sweeps ask of it, and that a capacity which rates are shares
    of is among what is recorded."""
    sweeps = {(cell.variant, cell.level.sweep.name): cell.level.sweep for cell in planned}
    for (variant, name), sweep in sweeps.items():
        try:
            _ask(get_engine(tier.variant(variant).engine), sweep)
        except HarnessError as error:
            raise HarnessError(f"{experiment.path}: sweep {name!r}: {error}") from None
        if not (sweep.capacity_frac or sweep.search_steps):
            continue
        plain = capacity_variant(tier, sweep, variant)
        if (plain, sweep.capacity_of) not in sweeps:
            raise HarnessError(
                f"{experiment.path}: sweep {name!r}: {variant} takes a share of the capacity of "
                f"{plain} in sweep {sweep.capacity_of!r}, which has no cell of {plain} here. "
                "Record without ENGINE= and URL=, or leave `engines` out of that sweep"
            )


def _ask(engine: Engine, sweep: Sweep) -> None:
    """Raises the engine's own HarnessError for what it can't do."""
    body = engine.request_body(
        endpoint=sweep.endpoint,
        prompt_ids=None,
        prompt_text="",
        output_tokens=sweep.output_tokens,
        seed=0,
        served_name="",
        salt=max(sweep.salts),  # "" where all of them are
        adapter=max(sweep.adapters),
    )
    shaped(engine, sweep, body)
    if sweep.reset_cache:
        external.cache_reset_url(engine, "")
