"""experiment.toml -> frozen dataclasses: what an episode declares, validated.

Every error names the file and the key, so that a typo never becomes a silently ignored setting.
"""

import hashlib
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.recording.statistics import samples_needed
from harness.toml_values import build, require, table, typed

TIERS = ("cpu", "gpu")
ENDPOINTS = ("completions", "chat")
LOADS = ("closed", "constant", "poisson", "gamma", "stages", "trace")
ABOVE_ZERO = (
    *("prompt_tokens", "output_tokens", "in_flight", "rate_per_s", "capacity_frac", "min_requests"),
    *("burstiness", "time_scale", "trace_block_tokens", "metrics_hz", "turns", "processes"),
    "documents",
)
RATES = ("constant", "poisson", "gamma")
# A key that another kind of load would ignore is refused: which kinds take it.
LOAD_KEYS = {
    "in_flight": ("closed",),
    "rounds": ("closed",),
    "min_duration_s": ("closed", *RATES),
    "max_requests": ("closed", "trace"),
    "rate_per_s": RATES,
    "capacity_frac": RATES,
    "capacity_of": RATES,
    "burstiness": ("gamma",),
    "stages": ("stages",),
    "ramp": ("stages",),
    "trace": ("trace",),
    "time_scale": ("trace",),
    "trace_block_tokens": ("trace",),
    "connections": ("stages", "trace", *RATES),
    "front_cap": ("stages", "trace", *RATES),
    "search_steps": RATES,
    "turns": ("closed", "stages", *RATES),
    "mix": ("closed", "stages", *RATES),
    "shared_tokens": ("closed", "stages", *RATES),
}
SHARING_KEYS = ("shared_at", "documents", "salts", "adapters")
SEARCH_KEYS = ("search_frac", "slo_ttft_ms", "slo_tpot_ms", "slo_quantile")
LENGTHS_BY = ("ignore_eos", "min_tokens")


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
    """Cells that differ in load level and prompt length alone.

    prompt_tokens: the lengths. output_tokens: fixed output length. A cell ends when min_requests
    are done and min_duration_s has passed. warmup_requests come before and are excluded.
    max_requests: prompts prepared, needed where a closed loop has a duration. metrics_hz: how often
    /metrics is read. engines: some of the tier's, empty for all. repeats: in the first so many
    alone, 0 for all. cold: every prompt is new to the engine. same_prompts: all levels that say so
    send the same prompts, in every repeat. logprobs: how many likeliest tokens to ask for.
    processes: load processes that share the requests.

    load: how requests arrive.
    - "closed": in_flight, the numbers of slots.
    - "constant", "poisson", "gamma": rate_per_s, or capacity_frac, a share of the highest rate that
      the closed-loop sweep capacity_of reached in the first repeat; a variant that is not in that
      sweep takes a share of its plain engine's. burstiness: gamma's shape.
    - "stages": stages, pairs of rate_per_s and seconds; ramp: from one rate to the next in a line.
    - "trace": a file beside the declaration, stretched by time_scale; a block of its hash_ids is
      trace_block_tokens long. max_requests: how much of it. The lengths above are its warm-up's.
    connections: the most in flight in an open loop.

    turns: more than one makes each request the first of a session. After think_s from the end of an
    answer comes the prompt before, an answer of output_tokens and turn_tokens more.

    mix: kinds of measured requests, each its prompt tokens, output tokens and weight: a weight is
    how many there are of it in every sum of the weights, in random order. The lengths above are the
    warm-up's.

    shared_tokens: how many tokens of each measured prompt come from a text that the prompts share,
    at most the whole; the rest is its own. shared_at: "start" or "end" of the prompt. documents:
    how many such texts there are; the prompts take them in turn, and likewise salts (cache salts)
    and adapters (of LoRA), "" for none. reset_cache: the engine's prefix cache is emptied before
    each cell. front_cap: connections is a cap in front of the server by intent.

    search_steps: instead of rates, so many steps of a bisection for the highest rate at which the
    objective holds, between two shares of the capacity (search_frac): TTFT from the scheduled time
    and TPOT of the share slo_quantile of all requests are at most slo_ttft_ms and slo_tpot_ms, 0
    for no bound.

    priorities: sent with the measured requests, in turn; empty for none.

    length_by: how the exact output length is asked for: "ignore_eos" tells the server the length;
    "min_tokens" forbids an earlier end, so that the server can plan by max_tokens alone.
    """

    name: str
    endpoint: str
    prompt_tokens: tuple[int, ...]
    output_tokens: int
    warmup_requests: int
    min_requests: int
    load: str = "closed"
    in_flight: tuple[int, ...] = ()
    rate_per_s: tuple[float, ...] = ()
    capacity_frac: tuple[float, ...] = ()
    capacity_of: str = ""
    burstiness: float = 1.0
    stages: tuple[tuple[float, float], ...] = ()
    ramp: bool = False
    trace: str = ""
    time_scale: float = 1.0
    trace_block_tokens: int = 512
    connections: int = 0
    turns: int = 1
    think_s: float = 0.0
    turn_tokens: int = 0
    rounds: int = 0
    min_duration_s: float = 0.0
    max_requests: int = 0
    metrics_hz: float = 2.0
    engines: tuple[str, ...] = ()
    repeats: int = 0
    cold: bool = True
    same_prompts: bool = False
    logprobs: int = 0
    processes: int = 1
    mix: tuple[tuple[int, int, int], ...] = ()
    shared_tokens: tuple[int, ...] = ()
    shared_at: str = "start"
    documents: int = 1
    salts: tuple[str, ...] = ("",)
    adapters: tuple[str, ...] = ("",)
    reset_cache: bool = False
    front_cap: bool = False
    search_steps: int = 0
    search_frac: tuple[float, ...] = (0.2, 1.2)
    slo_ttft_ms: float = 0.0
    slo_tpot_ms: float = 0.0
    slo_quantile: float = 0.9
    length_by: str = "ignore_eos"
    priorities: tuple[int, ...] = ()

    def longest_tokens(self) -> int:
        """Prompt and answer of the longest request; a trace's own are not known here."""
        later = (self.turns - 1) * (self.output_tokens + self.turn_tokens)
        mixed = max((prompt + output for prompt, output, _ in self.mix), default=0)
        return max(max(self.prompt_tokens) + later + self.output_tokens, mixed)


@dataclass(frozen=True, slots=True)
class Variant:
    """One configuration of an engine. dtype: the type to compute in, empty for the tier's own."""

    engine: str
    flags: tuple[str, ...] = ()
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class Tier:
    """What one machine tier runs.

    model: a name that harness.engines.models knows, a hub id or a path. engines: what is compared,
    each the name of an engine or of a variant. engine_cores: cores the engine's processes are
    pinned to, empty for no pinning. usd_per_hour: the declared price of price_unit ("core" or
    "gpu"), an input of the cost figures and not a measurement. flags: extra command-line flags by
    engine. variants: configurations under names of their own. probe: a question and a word that
    the greedy answer must hold; an engine whose answer lacks it computes something else than the
    model, however fast.
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
    probe: tuple[str, ...] = ()

    def variant(self, name: str) -> Variant:
        """The configuration of that name; an engine's own name means its plain one."""
        return self.variants.get(name) or Variant(name, self.flags.get(name, ()))


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
    require(path, f"{where}.sweep", isinstance(raw.get("sweep", []), list), "[[sweep]] tables")
    sweeps = tuple(
        _sweep(path, f"{where}.sweep[{i}]", table(path, f"{where}.sweep", raw_sweep))
        for i, raw_sweep in enumerate(raw.get("sweep", []))
    )
    flags = {
        engine: typed(path, f"{where}.flags.{engine}", values, tuple[str, ...])
        for engine, values in table(path, f"{where}.flags", raw.get("flags", {})).items()
    }
    variants = {
        variant: build(Variant, path, f"{where}.variant.{variant}", table(path, variant, given))
        for variant, given in table(path, f"{where}.variant", raw.get("variant", {})).items()
    }
    given = {key: value for key, value in raw.items() if key not in ("sweep", "flags", "variant")}
    parts = {"name": name, "sweeps": sweeps, "flags": flags, "variants": variants}
    tier = build(Tier, path, where, given | parts)
    _check_tier(path, where, tier)
    for i, sweep in enumerate(sweeps):
        _check_sweep(path, f"{where}.sweep[{i}]", sweep, tier)
    return tier


def _check_tier(path: Path, where: str, tier: Tier) -> None:
    require(path, f"{where}.sweep", bool(tier.sweeps), "at least one [[sweep]] is needed")
    require(path, f"{where}.engines", bool(tier.engines), "at least one engine is needed")
    require(path, f"{where}.repeats", tier.repeats >= 1, "must be at least 1")
    require(path, f"{where}.price_unit", tier.price_unit in ("core", "gpu"), "core or gpu")
    for key, named in (("flags", tier.flags), ("variant", tier.variants)):
        unknown = ", ".join(sorted(set(named) - set(tier.engines)))
        require(path, f"{where}.{key}", not unknown, f"no engine {unknown} here")
    require(path, f"{where}.request_timeout_s", tier.request_timeout_s > 0, "must be above 0")
    apart = tier.client_core not in tier.engine_cores
    require(path, f"{where}.client_core", apart, "is one of engine_cores")
    require(path, f"{where}.probe", len(tier.probe) in (0, 2), "a question and a word")
    names = [sweep.name for sweep in tier.sweeps]
    require(path, f"{where}.sweep", len(set(names)) == len(names), "two sweeps share a name")


def _sweep(path: Path, where: str, raw: dict[str, Any]) -> Sweep:
    sweep = build(Sweep, path, where, raw)
    require(path, f"{where}.endpoint", sweep.endpoint in ENDPOINTS, f"one of {ENDPOINTS}")
    require(path, f"{where}.load", sweep.load in LOADS, f"one of {LOADS}")
    require(path, f"{where}.length_by", sweep.length_by in LENGTHS_BY, f"one of {LENGTHS_BY}")
    require(path, f"{where}.prompt_tokens", bool(sweep.prompt_tokens), "must not be empty")
    once = len(set(sweep.prompt_tokens)) == len(sweep.prompt_tokens)
    require(path, f"{where}.prompt_tokens", once, "a length stands there twice")
    for key in ABOVE_ZERO:
        value = getattr(sweep, key)
        lowest = min(value, default=1) if isinstance(value, tuple) else value
        require(path, f"{where}.{key}", lowest > 0, "must be above 0")
    for key in (
        "warmup_requests",
        "min_duration_s",
        "think_s",
        "turn_tokens",
        "logprobs",
        "repeats",
        "rounds",
        "max_requests",
    ):
        require(path, f"{where}.{key}", getattr(sweep, key) >= 0, "must not be negative")
    return sweep


def _check_sweep(path: Path, where: str, sweep: Sweep, tier: Tier) -> None:
    """What a sweep needs for its kind of load, and of the tier around it."""
    needed = {"closed": "in_flight", "stages": "stages", "trace": "trace"}.get(sweep.load)
    kinds = ("rate_per_s", "capacity_frac", "search_steps")
    levels = [key for key in kinds if getattr(sweep, key)]
    if needed:
        require(path, f"{where}.{needed}", bool(getattr(sweep, needed)), "must not be empty")
    else:
        said = "needs rate_per_s, capacity_frac or search_steps, and one alone"
        require(path, where, len(levels) == 1, said)
    for key in LOAD_KEYS:
        mine = sweep.load in LOAD_KEYS[key]
        default = next(f.default for f in fields(Sweep) if f.name == key)
        require(path, f"{where}.{key}", mine or getattr(sweep, key) == default, "of another load")
    if sweep.load == "closed":
        enough = sweep.processes <= min(sweep.in_flight)
        require(path, f"{where}.processes", enough, "more than the requests in flight")
    else:
        require(path, f"{where}.connections", sweep.connections > 0, "must be above 0")
    if sweep.capacity_frac or sweep.search_steps:
        closed = {s.name: s for s in tier.sweeps if s.load == "closed"}
        require(path, f"{where}.capacity_of", sweep.capacity_of in closed, "no such closed sweep")
        base = closed[sweep.capacity_of]
        have = set(base.engines or tier.engines)
        asked = sweep.engines or tier.engines
        lacking = {v for v in asked if not {v, tier.variant(v).engine} & have}
        lacking_tokens = set(sweep.prompt_tokens) - set(base.prompt_tokens)
        same = not lacking and not lacking_tokens
        require(path, f"{where}.capacity_of", same, "lacks an engine or a length of this sweep")
    for rate, duration_s in sweep.stages:
        good = rate >= 0 and duration_s > 0
        require(path, f"{where}.stages", good, "pairs of a rate and a duration above 0")
    if sweep.load == "closed" and sweep.min_duration_s:
        most = max(sweep.min_requests, sweep.rounds * max(sweep.in_flight))
        enough = sweep.max_requests >= most
        needed = f"needed with min_duration_s, and at least {most}"
        require(path, f"{where}.max_requests", enough, needed)
    _check_prompts(path, where, sweep)
    _check_search(path, where, sweep)
    unknown = ", ".join(sorted(set(sweep.engines) - set(tier.engines)))
    require(path, f"{where}.engines", not unknown, f"no engine {unknown} in this tier")
    longest = sweep.longest_tokens()
    fits = longest <= tier.max_model_tokens
    require(path, "max_model_tokens", fits, f"sweep {sweep.name!r} needs {longest} tokens")


def _check_prompts(path: Path, where: str, sweep: Sweep) -> None:
    """What the prompts of a sweep are made of."""
    above = all(value > 0 for kind in sweep.mix for value in kind)
    require(path, f"{where}.mix", above, "lengths and weights must be above 0")
    require(path, f"{where}.mix", not sweep.mix or sweep.turns == 1, "sessions have no mix")
    for key in SHARING_KEYS:
        default = next(f.default for f in fields(Sweep) if f.name == key)
        mine = bool(sweep.shared_tokens) or getattr(sweep, key) == default
        require(path, f"{where}.{key}", mine, "of a sweep with shared_tokens")
    if sweep.shared_tokens:
        above = min(sweep.shared_tokens) >= 0
        require(path, f"{where}.shared_tokens", above, "must not be negative")
        require(path, f"{where}.shared_at", sweep.shared_at in ("start", "end"), "start or end")
        alone = sweep.turns == 1 and not sweep.mix
        require(path, f"{where}.shared_tokens", alone, "neither with turns nor with a mix")
        require(path, f"{where}.cold", not sweep.cold, "must be false where prompts share tokens")
    require(path, f"{where}.salts", bool(sweep.salts), "must not be empty")
    require(path, f"{where}.adapters", bool(sweep.adapters), "must not be empty")


def _check_search(path: Path, where: str, sweep: Sweep) -> None:
    """What a search for the highest rate needs."""
    require(path, f"{where}.search_steps", sweep.search_steps >= 0, "must not be negative")
    for key in SEARCH_KEYS:
        default = next(f.default for f in fields(Sweep) if f.name == key)
        mine = bool(sweep.search_steps) or getattr(sweep, key) == default
        require(path, f"{where}.{key}", mine, "of a sweep with search_steps")
    if not sweep.search_steps:
        return
    shares = sweep.search_frac
    rising = len(shares) == 2 and 0 < shares[0] < shares[1]
    require(path, f"{where}.search_frac", rising, "two shares of the capacity, the lower one first")
    bounds = (sweep.slo_ttft_ms, sweep.slo_tpot_ms)
    require(
        path, f"{where}.slo_ttft_ms", min(bounds) >= 0 < max(bounds), "a bound above 0 is needed"
    )
    inside = 0 < sweep.slo_quantile < 1
    require(path, f"{where}.slo_quantile", inside, "a share between 0 and 1")
    needed = samples_needed(100 * sweep.slo_quantile)
    enough = f"takes {needed} requests, min_requests has {sweep.min_requests}"
    require(path, f"{where}.slo_quantile", sweep.min_requests >= needed, enough)
