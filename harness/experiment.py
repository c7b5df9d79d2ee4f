"""experiment.toml -> frozen dataclasses: what an episode declares, validated.

Every error names the file and the key, so that a typo never becomes a silently ignored setting.
"""

import hashlib
import random
import tomllib
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from harness.errors import HarnessError

TIERS = ("cpu", "gpu")
ENDPOINTS = ("completions", "chat")
T = TypeVar("T")


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
class Sweep:
    """Cells that differ in prompt length alone.

    prompt_tokens: the lengths. output_tokens: fixed output length. in_flight: closed-loop slots.
    A cell ends when min_requests are done and min_duration_s has passed. warmup_requests come
    before and are excluded. max_requests: prompts prepared, needed where a duration is asked for.
    metrics_hz: how often /metrics is read.
    """

    name: str
    endpoint: str
    prompt_tokens: tuple[int, ...]
    output_tokens: int
    in_flight: int
    warmup_requests: int
    min_requests: int
    min_duration_s: float = 0.0
    max_requests: int = 0
    metrics_hz: float = 2.0


@dataclass(frozen=True, slots=True)
class Tier:
    """What one machine tier runs.

    model: a name that harness.engines.models knows, a hub id or a path. engine_cores: cores the
    engine's processes are pinned to, empty for no pinning. usd_per_hour: the declared price of
    price_unit ("core" or "gpu"), an input of the cost figures and not a measurement.
    flags: extra command-line flags by engine. probe: a question and a word that the greedy answer
    must hold; an engine whose answer lacks it computes something else than the model, however fast.
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
    probe: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One load level of one engine in one repeat, and its place in the declared order (from 1)."""

    position: int
    repeat: int
    engine: str
    sweep: Sweep
    prompt_tokens: int


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
        name: _tier(path, name, _table(path, f"tier.{name}", table))
        for name, table in _table(path, "tier", raw.get("tier", {})).items()
    }
    if not tiers:
        raise HarnessError(f"{path}: declares no [tier.cpu] or [tier.gpu]")
    return Experiment(
        path=path,
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        episode=_build(Episode, path, "episode", _table(path, "episode", raw.get("episode", {}))),
        seeds=_build(Seeds, path, "seeds", _table(path, "seeds", raw.get("seeds", {}))),
        tiers=tiers,
    )


def cells(experiment: Experiment, tier: Tier, engines: tuple[str, ...]) -> list[Cell]:
    """Every cell in the order in which it is recorded.

    Engines take turns within a repeat, and each repeat begins with the next engine, so that drift
    of a shared machine falls on all of them alike. The cells of one engine are shuffled (seed:
    arrivals and repeat, the same for every engine), so that drift is not mistaken for length.
    """
    planned: list[Cell] = []
    for repeat in range(1, tier.repeats + 1):
        levels = [(sweep, tokens) for sweep in tier.sweeps for tokens in sweep.prompt_tokens]
        random.Random(f"{experiment.seeds.arrivals}:{repeat}").shuffle(levels)
        turn = (repeat - 1) % len(engines)
        for engine in engines[turn:] + engines[:turn]:
            for sweep, tokens in levels:
                planned.append(Cell(len(planned) + 1, repeat, engine, sweep, tokens))
    return planned


def _tier(path: Path, name: str, raw: dict[str, Any]) -> Tier:
    where = f"tier.{name}"
    if name not in TIERS:
        raise HarnessError(f"{path}: unknown tier {name!r} in [{where}]; known: {', '.join(TIERS)}")
    _require(path, f"{where}.sweep", isinstance(raw.get("sweep", []), list), "[[sweep]] tables")
    sweeps = tuple(
        _sweep(path, f"{where}.sweep[{i}]", _table(path, f"{where}.sweep", table))
        for i, table in enumerate(raw.get("sweep", []))
    )
    flags = {
        engine: _typed(path, f"{where}.flags.{engine}", values, tuple[str, ...])
        for engine, values in _table(path, f"{where}.flags", raw.get("flags", {})).items()
    }
    given = {key: value for key, value in raw.items() if key not in ("sweep", "flags")}
    tier = _build(Tier, path, where, given | {"name": name, "sweeps": sweeps, "flags": flags})
    _require(path, f"{where}.sweep", bool(sweeps), "at least one [[sweep]] is needed")
    _require(path, f"{where}.engines", bool(tier.engines), "at least one engine is needed")
    _require(path, f"{where}.repeats", tier.repeats >= 1, "must be at least 1")
    _require(path, f"{where}.price_unit", tier.price_unit in ("core", "gpu"), "core or gpu")
    unknown = set(flags) - set(tier.engines)
    _require(path, f"{where}.flags", not unknown, f"no engine {', '.join(sorted(unknown))} here")
    _require(path, f"{where}.request_timeout_s", tier.request_timeout_s > 0, "must be above 0")
    apart = tier.client_core not in tier.engine_cores
    _require(path, f"{where}.client_core", apart, "is one of engine_cores")
    _require(path, f"{where}.probe", len(tier.probe) in (0, 2), "a question and a word")
    names = [sweep.name for sweep in sweeps]
    _require(path, f"{where}.sweep", len(set(names)) == len(names), "two sweeps share a name")
    for sweep in sweeps:
        longest = max(sweep.prompt_tokens) + sweep.output_tokens
        _require(
            path,
            f"{where}.max_model_tokens",
            longest <= tier.max_model_tokens,
            f"sweep {sweep.name!r} needs {longest} tokens",
        )
    return tier


def _sweep(path: Path, where: str, raw: dict[str, Any]) -> Sweep:
    sweep = _build(Sweep, path, where, raw)
    _require(path, f"{where}.endpoint", sweep.endpoint in ENDPOINTS, f"one of {ENDPOINTS}")
    _require(path, f"{where}.prompt_tokens", bool(sweep.prompt_tokens), "must not be empty")
    once = len(set(sweep.prompt_tokens)) == len(sweep.prompt_tokens)
    _require(path, f"{where}.prompt_tokens", once, "a length stands there twice")
    for key in ("output_tokens", "in_flight", "min_requests", "metrics_hz"):
        _require(path, f"{where}.{key}", getattr(sweep, key) > 0, "must be above 0")
    _require(path, f"{where}.prompt_tokens", min(sweep.prompt_tokens) > 0, "must be above 0")
    _require(
        path,
        f"{where}.max_requests",
        sweep.min_duration_s == 0 or sweep.max_requests >= sweep.min_requests,
        "needed with min_duration_s, and at least min_requests",
    )
    for key in ("warmup_requests", "min_duration_s"):
        _require(path, f"{where}.{key}", getattr(sweep, key) >= 0, "must not be negative")
    return sweep


def _require(path: Path, key: str, holds: bool, message: str) -> None:
    if not holds:
        raise HarnessError(f"{path}: {key}: {message}")


def _table(path: Path, where: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise HarnessError(f"{path}: [{where}] must be a table")
    return value


def _build(kind: type[T], path: Path, where: str, raw: dict[str, Any]) -> T:
    """A dataclass from a TOML table: every key known, every needed key there, every type right."""
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for key in raw:
        if key not in known:
            raise HarnessError(
                f"{path}: unknown key {where}.{key} (known: {', '.join(sorted(known))})"
            )
    values: dict[str, Any] = {}
    for name, field in known.items():
        if name in raw:
            values[name] = _typed(path, f"{where}.{name}", raw[name], hints[name])
        elif field.default is MISSING:
            raise HarnessError(f"{path}: missing key {where}.{name}")
    return kind(**values)


def _typed(path: Path, key: str, value: Any, hint: Any) -> Any:
    if hint in (tuple[int, ...], tuple[str, ...]):
        inner = int if hint == tuple[int, ...] else str
        if not isinstance(value, list) or any(type(item) is not inner for item in value):
            raise HarnessError(f"{path}: {key} must be a list of {inner.__name__}")
        return tuple(value)
    if hint is float and type(value) is int:
        return float(value)
    if hint in (int, float, str) and type(value) is not hint:
        raise HarnessError(f"{path}: {key} must be {hint.__name__}, not {value!r}")
    return value
