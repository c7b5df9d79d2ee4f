"""The cells and jobs of a declaration, in the order in which they are recorded."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from harness.experiment import Experiment, Job, Tier
from harness.sweep import Sweep


@dataclass(frozen=True, slots=True)
class Level:
    """One load level. number: its place among all levels of the tier, from 0; levels that share
    prompts share it. shared_tokens: of each prompt, None where nothing is shared. kind, extra: of
    the texts, None where the sweep has no such levels. in_flight: of a closed loop. rate_per_s,
    capacity_frac or search_step: of an open one."""

    sweep: Sweep
    number: int
    prompt_tokens: int
    shared_tokens: int | None = None
    kind: str | None = None
    extra: str | None = None
    in_flight: int | None = None
    rate_per_s: float | None = None
    capacity_frac: float | None = None
    search_step: int | None = None

    @property
    def min_requests(self) -> int:
        """Measured requests that the cell needs."""
        return max(self.sweep.min_requests, self.sweep.rounds * (self.in_flight or 0))

    def __str__(self) -> str:
        parts = [f"{self.prompt_tokens} tokens"]
        if self.shared_tokens is not None:
            parts.append(f"{self.shared_tokens} shared")
        parts += filter(None, (self.kind, self.extra))
        if self.in_flight:
            parts.append(f"{self.in_flight} in flight")
        if self.rate_per_s:
            parts.append(f"{self.rate_per_s:g}/s")
        if self.capacity_frac:
            parts.append(f"{self.capacity_frac:.0%} of capacity")
        if self.search_step:
            parts.append(f"step {self.search_step}")
        return f"{self.sweep.name} {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One load level of one variant in one repeat, and its place in the declared order (from 1)."""

    position: int
    repeat: int
    variant: str
    level: Level


def levels(tier: Tier) -> Iterator[Level]:
    """Every load level of a tier, as declared."""
    number, shared = 0, dict[int, int]()
    for sweep in tier.sweeps:
        for tokens in sweep.prompt_tokens:
            shared_tokens = dict.fromkeys(min(each, tokens) for each in sweep.shared_tokens)
            each_cut: Iterable[int | None] = shared_tokens or (None,)
            texts: Iterable[tuple[str | None, str | None]] = product(
                sweep.kinds or (None,), sweep.extra or (None,)
            )
            for in_common, (kind, extra), load in product(each_cut, texts, _loads(sweep)):
                own = shared.setdefault(tokens, number) if sweep.same_prompts else number
                yield Level(sweep, own, tokens, in_common, kind, extra, **load)
                number += own == number


def _loads(sweep: Sweep) -> list[dict[str, Any]]:
    for key in ("in_flight", "rate_per_s", "capacity_frac"):
        if getattr(sweep, key):
            return [{key: value} for value in getattr(sweep, key)]
    return [{"search_step": step} for step in range(1, sweep.search_steps + 1)] or [{}]


def cells(experiment: Experiment, tier: Tier, variants: tuple[str, ...]) -> list[Cell]:
    """Every cell in the order in which it is recorded.

    Variants take turns within a repeat, and each repeat begins with the next one, so that drift
    of a shared machine falls on all of them alike. The cells of one variant are shuffled (seed:
    arrivals and repeat, the same for every variant), so that drift is not mistaken for load. In the
    first repeat those that need the measured capacity come last. The steps of a search keep their
    places among the others, but in their order: each needs what the one before it found.
    """
    planned: list[Cell] = []
    for repeat in range(1, tier.repeats + 1):
        order = list(levels(tier))
        random.Random(f"{experiment.seeds.arrivals}:{repeat}").shuffle(order)
        if repeat == 1:
            order.sort(key=lambda level: bool(level.sweep.capacity_of))
        order = _in_step_order(order)
        turn = (repeat - 1) % len(variants)
        for variant in variants[turn:] + variants[:turn]:
            for level in order:
                sweep = level.sweep
                if repeat > (sweep.repeats or repeat):
                    continue
                if not sweep.engines or variant in sweep.engines:
                    planned.append(Cell(len(planned) + 1, repeat, variant, level))
    return planned


def jobs(tier: Tier, repeat: int) -> list[Job]:
    """The jobs of a repeat; each repeat begins with the next one."""
    turn = (repeat - 1) % max(len(tier.jobs), 1)
    turned = tier.jobs[turn:] + tier.jobs[:turn]
    return [job for job in turned if repeat <= (job.repeats or repeat)]


def _in_step_order(order: list[Level]) -> list[Level]:
    steps = [(level.number, level.search_step, level) for level in order if level.search_step]
    ordered = iter(sorted(steps, key=lambda step: step[:2]))
    return [next(ordered)[-1] if level.search_step else level for level in order]
