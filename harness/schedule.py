"""The cells of a declaration, in the order in which they are recorded."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.experiment import Experiment, Sweep, Tier


@dataclass(frozen=True, slots=True)
class Level:
    """One load level. number: its place among all levels of the tier, from 0; levels that share
    prompts share it. in_flight: of a closed loop. rate_per_s or capacity_frac: of an open one."""

    sweep: Sweep
    number: int
    prompt_tokens: int
    in_flight: int | None = None
    rate_per_s: float | None = None
    capacity_frac: float | None = None

    @property
    def min_requests(self) -> int:
        """Measured requests that the cell needs."""
        return max(self.sweep.min_requests, self.sweep.rounds * (self.in_flight or 0))

    def __str__(self) -> str:
        parts = [f"{self.prompt_tokens} tokens"]
        if self.in_flight:
            parts.append(f"{self.in_flight} in flight")
        if self.rate_per_s:
            parts.append(f"{self.rate_per_s:g}/s")
        if self.capacity_frac:
            parts.append(f"{self.capacity_frac:.0%} of capacity")
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
            for load in _loads(sweep):
                own = shared.setdefault(tokens, number) if sweep.same_prompts else number
                yield Level(sweep, own, tokens, **load)
                number += own == number


def _loads(sweep: Sweep) -> list[dict[str, Any]]:
    for key in ("in_flight", "rate_per_s", "capacity_frac"):
        if getattr(sweep, key):
            return [{key: value} for value in getattr(sweep, key)]
    return [{}]


def cells(experiment: Experiment, tier: Tier, variants: tuple[str, ...]) -> list[Cell]:
    """Every cell in the order in which it is recorded.

    Variants take turns within a repeat, and each repeat begins with the next one, so that drift
    of a shared machine falls on all of them alike. The cells of one variant are shuffled (seed:
    arrivals and repeat, the same for every variant), so that drift is not mistaken for load. In the
    first repeat those that need the measured capacity come last.
    """
    planned: list[Cell] = []
    for repeat in range(1, tier.repeats + 1):
        order = list(levels(tier))
        random.Random(f"{experiment.seeds.arrivals}:{repeat}").shuffle(order)
        if repeat == 1:
            order.sort(key=lambda level: level.capacity_frac is not None)
        turn = (repeat - 1) % len(variants)
        for variant in variants[turn:] + variants[:turn]:
            for level in order:
                sweep = level.sweep
                if repeat > (sweep.repeats or repeat):
                    continue
                if not sweep.engines or variant in sweep.engines:
                    planned.append(Cell(len(planned) + 1, repeat, variant, level))
    return planned
