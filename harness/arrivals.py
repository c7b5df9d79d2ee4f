"""When the requests of an open loop are to be sent: absolute deadlines, made before the run.

A relative sleep after each request adds up every lateness and delivers less than the rate asked
for; a deadline counted from the start of the phase does not. Every function gives an endless (or,
for a trace and for stages, a finite) iterator of offsets in ns, from a seed of its own.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from harness.errors import HarnessError


def constant(rate_per_s: float) -> Iterator[int]:
    """One request every 1/rate seconds, the first after one such gap."""
    for number in count(1):
        yield round(number / rate_per_s * 1e9)


def gamma(rate_per_s: float, burstiness: float, seed: str) -> Iterator[int]:
    """Gamma-distributed gaps of mean 1/rate and shape `burstiness`; their coefficient of variation
    is 1/sqrt(burstiness). 1 is a Poisson process; below 1, requests come in bursts."""
    rng, at_s = random.Random(seed), 0.0
    while True:
        at_s += rng.gammavariate(burstiness, 1 / (burstiness * rate_per_s))
        yield round(at_s * 1e9)


def stages(stages: tuple[tuple[float, float], ...], ramp: bool, seed: str) -> Iterator[int]:
    """Poisson arrivals whose rate changes: (rate_per_s, duration_s) one after the other.

    ramp: the rate moves in a straight line from each stage's rate to that of the next; the last
    stage keeps its own. Made by running a unit-rate process through the inverse of the integrated
    rate (the time-rescaling theorem).
    """
    rng = random.Random(seed)
    goal = rng.expovariate(1.0)  # integrated rate at which the next request is due
    begun_s = passed = 0.0
    for i, (rate, duration_s) in enumerate(stages):
        then = stages[i + 1][0] if ramp and i + 1 < len(stages) else rate
        area = (rate + then) / 2 * duration_s
        while goal <= passed + area:
            yield round((begun_s + _time_s(goal - passed, rate, then, duration_s)) * 1e9)
            goal += rng.expovariate(1.0)
        passed += area
        begun_s += duration_s


def _time_s(area: float, rate: float, then: float, duration_s: float) -> float:
    """Where the area under a line from rate to then reaches `area`: the root of a quadratic, in the
    form that also holds for a level line."""
    slope = (then - rate) / duration_s
    return 2 * area / (rate + (rate * rate + 2 * slope * area) ** 0.5)


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One request of a trace. block_ids: its prompt's blocks; equal ids hold equal tokens."""

    due_ns: int
    prompt_tokens: int
    output_tokens: int
    block_ids: tuple[int, ...]


def trace(path: Path, time_scale: float = 1.0) -> Iterator[TraceRow]:
    """A timestamped trace in the form that Mooncake published: JSON lines with timestamp (ms),
    input_length, output_length (tokens) and hash_ids (one a block of the prompt; optional).

    time_scale: 2 makes it last twice as long. Raises HarnessError naming file and line for a torn
    or impossible line, before anything is sent.
    """
    last = 0
    try:
        file = path.open(encoding="utf-8")
    except OSError as error:
        raise HarnessError(f"{path}: the trace cannot be read: {error.strerror}") from error
    with file:
        for number, line in enumerate(file, start=1):
            try:
                row = _trace_row(json.loads(line), time_scale)
            except (ValueError, KeyError, TypeError) as error:
                raise HarnessError(
                    f"{path}, line {number}: not a line of a trace ({error!r}); it needs timestamp "
                    "(ms), input_length and output_length, all numbers"
                ) from error
            if row.due_ns < last:
                raise HarnessError(f"{path}, line {number}: its timestamp is before the line above")
            last = row.due_ns
            yield row


def _trace_row(raw: dict[str, Any], time_scale: float) -> TraceRow:
    row = TraceRow(
        round(raw["timestamp"] * 1e6 * time_scale),
        int(raw["input_length"]),
        int(raw["output_length"]),
        tuple(int(block) for block in raw.get("hash_ids", ())),
    )
    if row.due_ns < 0 or row.prompt_tokens < 1 or row.output_tokens < 1:
        raise ValueError("a time below 0, or a length below 1")
    return row
