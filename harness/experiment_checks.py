"""What a declaration must hold to be recorded: each rule names the file and the key it fails on."""

import json
import re
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import HarnessError
from harness.statistics import samples_needed
from harness.sweep import Sweep
from harness.toml_values import require

if TYPE_CHECKING:
    from harness.experiment import Attempt, Job, Tier

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
    "texts": ("closed", "stages", *RATES),
}
SHARING_KEYS = ("shared_at", "documents", "salts", "adapters")
SEARCH_KEYS = ("search_frac", "slo_ttft_ms", "slo_tpot_ms", "slo_quantile")
TEXT_KEYS = ("kinds", "extra")
LENGTHS_BY = ("ignore_eos", "min_tokens", "eos")


def check_tier(path: Path, where: str, tier: "Tier") -> None:
    """What a tier needs beside its sweeps."""
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
    for key, each in (("sweep", tier.sweeps), ("attempt", tier.attempts), ("job", tier.jobs)):
        names = [one.name for one in each]
        require(path, f"{where}.{key}", len(set(names)) == len(names), "two of them share a name")


def check_attempt(path: Path, where: str, attempt: "Attempt", tier: "Tier") -> None:
    """What can be asked of an engine, whatever it answers."""
    require(path, f"{where}.endpoint", attempt.endpoint in ENDPOINTS, f"one of {ENDPOINTS}")
    require(path, f"{where}.timeout_s", attempt.timeout_s > 0, "must be above 0")
    apart = attempt.name not in tier.engines
    require(path, f"{where}.name", apart, "is the name of an engine or variant")
    require(path, f"{where}.body", bool(attempt.body or tier.probe), "needed without a probe")
    body: object = None
    with suppress(ValueError):
        body = json.loads(attempt.body or "{}")
    require(path, f"{where}.body", isinstance(body, dict), "must be a JSON object")
    for pattern in attempt.keep:
        try:
            re.compile(pattern)
        except re.error as error:
            raise HarnessError(f"{path}: {where}.keep: {pattern!r}: {error}") from None


def check_job(path: Path, where: str, job: "Job", tier: "Tier") -> None:
    """What a job needs beside its script."""
    require(path, f"{where}.timeout_s", job.timeout_s > 0, "must be above 0")
    require(path, f"{where}.threads", job.threads >= 1, "must be at least 1")
    some = 0 <= job.repeats <= tier.repeats
    require(path, f"{where}.repeats", some, f"0 for all, or at most the tier's {tier.repeats}")


def check_sweep(path: Path, where: str, sweep: Sweep, tier: "Tier") -> None:
    """What a sweep needs for its kind of load, and of the tier around it."""
    _check_values(path, where, sweep)
    needed = {"closed": "in_flight", "stages": "stages", "trace": "trace"}.get(sweep.load)
    kinds = ("rate_per_s", "capacity_frac", "search_steps")
    levels = [key for key in kinds if getattr(sweep, key)]
    if needed:
        require(path, f"{where}.{needed}", bool(getattr(sweep, needed)), "must not be empty")
    else:
        said = "needs rate_per_s, capacity_frac or search_steps, and one alone"
        require(path, where, len(levels) == 1, said)
    for key, loads in LOAD_KEYS.items():
        _default_unless(sweep.load in loads, path, where, sweep, key, "of another load")
    if sweep.load == "closed":
        enough = sweep.processes <= min(sweep.in_flight)
        require(path, f"{where}.processes", enough, "more than the requests in flight")
    else:
        require(path, f"{where}.connections", sweep.connections > 0, "must be above 0")
    if sweep.capacity_frac or sweep.search_steps:
        _check_capacity(path, where, sweep, tier)
    for rate, duration_s in sweep.stages:
        good = rate >= 0 and duration_s > 0
        require(path, f"{where}.stages", good, "pairs of a rate and a duration above 0")
    if sweep.load == "closed" and sweep.min_duration_s:
        most = max(sweep.min_requests, sweep.rounds * max(sweep.in_flight))
        enough = sweep.max_requests >= most
        needed = f"needed with min_duration_s, and at least {most}"
        require(path, f"{where}.max_requests", enough, needed)
    _check_prompts(path, where, sweep)
    _check_texts(path, where, sweep)
    _check_search(path, where, sweep)
    unknown = ", ".join(sorted(set(sweep.engines) - set(tier.engines)))
    require(path, f"{where}.engines", not unknown, f"no engine {unknown} in this tier")
    longest = sweep.longest_tokens()
    fits = longest <= tier.max_model_tokens
    require(path, "max_model_tokens", fits, f"sweep {sweep.name!r} needs {longest} tokens")


def _check_capacity(path: Path, where: str, sweep: Sweep, tier: "Tier") -> None:
    """That the capacity which the rates are shares of is recorded before them."""
    closed = {s.name: s for s in tier.sweeps if s.load == "closed"}
    require(path, f"{where}.capacity_of", sweep.capacity_of in closed, "no such closed sweep")
    base = closed[sweep.capacity_of]
    have = set(base.engines or tier.engines)
    asked = sweep.engines or tier.engines
    lacking = {v for v in asked if not {v, tier.variant(v).engine} & have}
    lacking_tokens = set(sweep.prompt_tokens) - set(base.prompt_tokens)
    same = not lacking and not lacking_tokens
    require(path, f"{where}.capacity_of", same, "lacks an engine or a length of this sweep")
    place = {variant: at for at, variant in enumerate(tier.engines)}
    plain = {v: tier.variant(v).engine for v in asked if v in place and v not in have}
    early = ", ".join(v for v in plain if place[v] < place.get(plain[v], 0))
    require(path, f"{where}.engines", not early, f"{early}: comes before its plain engine")


def _default_unless(taken: bool, path: Path, where: str, sweep: Sweep, key: str, said: str) -> None:
    """A key that would be ignored is refused."""
    default = next(f.default for f in fields(sweep) if f.name == key)
    require(path, f"{where}.{key}", taken or getattr(sweep, key) == default, said)


def _check_values(path: Path, where: str, sweep: Sweep) -> None:
    """What holds for each key alone."""
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
        "temperature",
    ):
        require(path, f"{where}.{key}", getattr(sweep, key) >= 0, "must not be negative")


def _check_prompts(path: Path, where: str, sweep: Sweep) -> None:
    """What the prompts of a sweep are made of."""
    above = all(value > 0 for kind in sweep.mix for value in kind)
    require(path, f"{where}.mix", above, "lengths and weights must be above 0")
    require(path, f"{where}.mix", not sweep.mix or sweep.turns == 1, "sessions have no mix")
    for key in SHARING_KEYS:
        shares = bool(sweep.shared_tokens)
        _default_unless(shares, path, where, sweep, key, "of a sweep with shared_tokens")
    if sweep.shared_tokens:
        above = min(sweep.shared_tokens) >= 0
        require(path, f"{where}.shared_tokens", above, "must not be negative")
        require(path, f"{where}.shared_at", sweep.shared_at in ("start", "end"), "start or end")
        own = sweep.endpoint == "completions"  # a chat template is shared beside our words
        require(path, f"{where}.endpoint", own, "completions alone with shared_tokens")
        alone = sweep.turns == 1 and not sweep.mix
        require(path, f"{where}.shared_tokens", alone, "neither with turns nor with a mix")
        require(path, f"{where}.cold", not sweep.cold, "must be false where prompts share tokens")
    require(path, f"{where}.salts", bool(sweep.salts), "must not be empty")
    require(path, f"{where}.adapters", bool(sweep.adapters), "must not be empty")


def _check_texts(path: Path, where: str, sweep: Sweep) -> None:
    """What prompts from a file go together with."""
    for key in TEXT_KEYS:
        _default_unless(bool(sweep.texts), path, where, sweep, key, "of a sweep with texts")
        levels = getattr(sweep, key)
        require(path, f"{where}.{key}", len(set(levels)) == len(levels), "a level is there twice")
    if sweep.texts:
        alone = sweep.turns == 1 and not sweep.mix and not sweep.shared_tokens
        require(path, f"{where}.texts", alone, "neither with turns, a mix, nor shared_tokens")
        one = len(sweep.prompt_tokens) == 1
        require(path, f"{where}.prompt_tokens", one, "one number with texts: the most of any")


def _check_search(path: Path, where: str, sweep: Sweep) -> None:
    """What a search for the highest rate needs."""
    require(path, f"{where}.search_steps", sweep.search_steps >= 0, "must not be negative")
    for key in SEARCH_KEYS:
        searches = bool(sweep.search_steps)
        _default_unless(searches, path, where, sweep, key, "of a sweep with search_steps")
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
    # Where they run out, requests are late in the client and an overloaded step says nothing.
    open_enough = sweep.front_cap or sweep.connections >= sweep.min_requests
    few = f"a search needs at least min_requests = {sweep.min_requests}"
    require(path, f"{where}.connections", open_enough, few)
