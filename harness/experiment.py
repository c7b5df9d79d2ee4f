"""experiment.toml -> frozen dataclasses: what an episode declares, validated.

Every error names the file and the key, so that a typo never becomes a silently ignored setting.
"""

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.experiment_checks import check_sweep, check_tier
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
    at most the whole; the rest is its own. For completions alone. shared_at: "start" or "end" of
    the prompt. documents: how many such texts there are; the prompts take them in turn, and
    likewise salts (cache salts) and adapters (of LoRA), "" for none. reset_cache: the engine's
    prefix cache is emptied before each cell. front_cap: connections is a cap in front of the server
    by intent.

    search_steps: instead of rates, so many steps of a bisection for the highest rate at which the
    objective holds, between two shares of the capacity (search_frac): TTFT from the scheduled time
    and TPOT of the share slo_quantile of all requests are at most slo_ttft_ms and slo_tpot_ms, 0
    for no bound. It needs min_requests connections, so that it is the server that is overloaded.

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
        build(Sweep, path, f"{where}.sweep[{i}]", table(path, f"{where}.sweep", raw_sweep))
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
    check_tier(path, where, tier)
    for i, sweep in enumerate(sweeps):
        check_sweep(path, f"{where}.sweep[{i}]", sweep, tier)
    return tier
