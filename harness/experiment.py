"""experiment.toml -> frozen dataclasses: what an episode declares, validated.

Every error names the file and the key, so that a typo never becomes a silently ignored setting.
"""

import hashlib
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.experiment_checks import check_attempt, check_job, check_sweep, check_tier
from harness.sweep import Sweep
from harness.toml_values import build, require, table, typed

TIERS = ("cpu", "gpu")


@dataclass(frozen=True, slots=True)
class Episode:
    """number: two digits. question: what the episode asks, one sentence."""

    number: str
    title: str
    question: str


@dataclass(frozen=True, slots=True)
class Seeds:
    """Separate seeds, so that a change of one never moves the others (MLPerf LoadGen's rule)."""

    prompts: int
    arrivals: int
    sampling: int


@dataclass(frozen=True, slots=True)
class Variant:
    """One configuration of an engine.

    dtype: the type to compute in, empty for the tier's own. model: instead of the tier's, a name
    that harness.engines.models knows or a path. env: of the engine, on top of the harness's. cores:
    it is pinned to these instead of engine_cores; they may hold the client's, which it then shares.
    `{models}` in flags and in values of env is the folder of models, .engines/models.
    """

    engine: str
    flags: tuple[str, ...] = ()
    dtype: str = ""
    model: str = ""
    env: dict[str, str] = field(default_factory=dict)
    cores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt(Variant):
    """What an engine is asked once, after the cells, to see what comes of it: it may refuse.

    asks: one plain phrase for the reader. body: JSON that is posted to endpoint, the model filled
    in; without one the probe question is asked. keep: patterns of log lines that are its evidence,
    beside the last errors. timeout_s: for the start, and again for the answer.
    """

    name: str
    asks: str
    endpoint: str = "chat"
    body: str = ""
    keep: tuple[str, ...] = ()
    timeout_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Job:
    """A measurement that is no request: a script of harness/jobs, run in each repeat after the
    cells.

    environment: whose Python runs it, a folder of .engines; "" for the harness's own. args:
    `{models}` in them is .engines/models, and a model named there is made before the recording;
    `{episode}` is the declaration's folder. repeats: in the first so many alone, 0 for all. cores:
    that it is pinned to, empty for engine_cores. threads: of its numerical libraries.
    """

    name: str
    script: str
    environment: str
    args: tuple[str, ...] = ()
    repeats: int = 0
    cores: tuple[int, ...] = ()
    threads: int = 1
    timeout_s: float = 1200.0


@dataclass(frozen=True, slots=True)
class Tier:
    """What one machine tier runs.

    model: a name that harness.engines.models knows, a hub id or a path. engines: what is compared,
    each the name of an engine or of a variant. engine_cores: cores the engine's processes are
    pinned to, empty for no pinning. usd_per_hour: the declared price of price_unit ("core" or
    "gpu"), an input of the cost figures and not a measurement. flags: extra command-line flags by
    engine. variants: configurations under names of their own. probe: a question and a word that
    the greedy answer must hold; an engine whose answer lacks it computes something else than the
    model, however fast. Variants with a model of their own are not asked. attempts and jobs: see
    there; they are part of a recording of all engines alone.
    """

    name: str
    model: str
    engines: tuple[str, ...]
    repeats: int
    max_model_tokens: int
    engine_cores: tuple[int, ...]
    client_core: int
    usd_per_hour: float
    price_unit: str
    request_timeout_s: float
    sweeps: tuple[Sweep, ...]
    flags: dict[str, tuple[str, ...]]
    variants: dict[str, Variant]
    attempts: tuple[Attempt, ...] = ()
    jobs: tuple[Job, ...] = ()
    probe: tuple[str, ...] = ()

    def variant(self, name: str) -> Variant:
        """The configuration of that name; an engine's own name means its plain one."""
        return self.variants.get(name) or Variant(name, self.flags.get(name, ()))

    def cores_of(self, own: Variant | Job) -> tuple[int, ...]:
        """What a variant or a job is pinned to."""
        return own.cores or self.engine_cores


# Tables of a tier that are lists: their key, the field of Tier, what each is.
LISTS: tuple[tuple[str, str, type[Any]], ...] = (
    ("sweep", "sweeps", Sweep),
    ("attempt", "attempts", Attempt),
    ("job", "jobs", Job),
)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A whole declaration. text and sha256 are those of the file, for the recording."""

    path: Path
    text: str
    sha256: str
    episode: Episode
    seeds: Seeds
    tiers: dict[str, Tier]


def find(root: Path, number: str) -> Path:
    """The folder of an episode: episodes/NN-slug. Raises HarnessError where there is none."""
    folders = sorted((root / "episodes").glob(f"{number}-*/experiment.toml"))
    if not folders:
        known = [p.parent.name for p in sorted((root / "episodes").glob("*/experiment.toml"))]
        raise HarnessError(
            f"no episode {number!r}: there is no episodes/{number}-*/experiment.toml "
            f"(declared: {', '.join(known) or 'none'})"
        )
    return folders[0].parent


def load(path: Path) -> Experiment:
    """Reads and validates one experiment.toml."""
    try:
        text = path.read_text(encoding="utf-8")
        raw = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise HarnessError(f"{path}: cannot be read: {error}") from error
    unknown = set(raw) - {"episode", "seeds", "tier"}
    if unknown:
        raise HarnessError(f"{path}: unknown key {sorted(unknown)[0]!r}")
    tiers = {
        name: _tier(path, name, table(path, f"tier.{name}", raw_tier))
        for name, raw_tier in table(path, "tier", raw.get("tier", {})).items()
    }
    if not tiers:
        raise HarnessError(f"{path}: declares no [tier.cpu] or [tier.gpu]")
    return Experiment(
        path=path,
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        episode=build(Episode, path, "episode", table(path, "episode", raw.get("episode", {}))),
        seeds=build(Seeds, path, "seeds", table(path, "seeds", raw.get("seeds", {}))),
        tiers=tiers,
    )


def _tier(path: Path, name: str, raw: dict[str, Any]) -> Tier:
    where = f"tier.{name}"
    if name not in TIERS:
        raise HarnessError(f"{path}: unknown tier {name!r} in [{where}]; known: {', '.join(TIERS)}")
    flags = {
        engine: typed(path, f"{where}.flags.{engine}", values, tuple[str, ...])
        for engine, values in table(path, f"{where}.flags", raw.get("flags", {})).items()
    }
    variants = {
        variant: build(Variant, path, f"{where}.variant.{variant}", table(path, variant, given))
        for variant, given in table(path, f"{where}.variant", raw.get("variant", {})).items()
    }
    parts: dict[str, Any] = {"name": name, "flags": flags, "variants": variants}
    for key, field_name, kind in LISTS:
        require(path, f"{where}.{key}", isinstance(raw.get(key, []), list), f"[[{key}]] tables")
        parts[field_name] = tuple(
            build(kind, path, f"{where}.{key}[{i}]", table(path, f"{where}.{key}", given))
            for i, given in enumerate(raw.get(key, []))
        )
    apart = {"flags", "variant", *(key for key, _, _ in LISTS)}
    given = {key: value for key, value in raw.items() if key not in apart}
    tier = build(Tier, path, where, given | parts)
    check_tier(path, where, tier)
    for i, sweep in enumerate(tier.sweeps):
        check_sweep(path, f"{where}.sweep[{i}]", sweep, tier)
    for i, attempt in enumerate(tier.attempts):
        check_attempt(path, f"{where}.attempt[{i}]", attempt, tier)
    for i, job in enumerate(tier.jobs):
        check_job(path, f"{where}.job[{i}]", job, tier)
    return tier
