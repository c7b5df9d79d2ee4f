"""What the browser needs to grade an answer, computed at build.

The browser (docs/assets/js/grade.js) compares and nothing more: it looks a unit up in the table
that this makes, and asks whether a number lies in a band. So the rules stand here once.
"""

from dataclasses import dataclass
from itertools import pairwise

from harness.errors import HarnessError

PREFIXES = ("", "k", "m", "million", "thousand")
SCALES = {"k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "million": 1e6, "billion": 1e9, "thousand": 1e3}
TIMES = {"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
BYTES = {
    "k": 1e3, "m": 1e6, "b": 1.0, "byte": 1.0, "bytes": 1.0,
    "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
    "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40,
}  # fmt: skip
SHARES = {"%": 1.0, "percent": 1.0}


@dataclass(frozen=True, slots=True)
class Band:
    """The numbers that count as one value: from low to high, both included."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


def band(value: float, factor: float) -> Band:
    """All x with max(value / x, x / value) <= factor. Raises HarnessError unless value > 0."""
    if not value > 0:
        raise HarnessError(f"its value is {value:g}, and a ratio needs one above zero")
    return Band(value / factor, value * factor)


def units(unit: str) -> dict[str, float]:
    """What may be written behind a number, in lower case, and what it then is times, in `unit`.

    A time takes any unit of time, bytes take SI and binary prefixes, anything else takes thousands
    and millions and its own name: of "tokens" 1.2k, 1.2k tokens, 0.0012 million.
    """
    for family in (TIMES, BYTES, SHARES):
        own = family.get(unit.lower())
        if own is not None:
            return {"": 1.0, **{name: scale / own for name, scale in family.items()}}
    found = {"": 1.0, **SCALES}
    names = {unit.lower(), unit.lower().removesuffix("s")} - {""}
    found |= {f"{prefix} {name}".strip(): found[prefix] for name in names for prefix in PREFIXES}
    return found


def slip_bands(answer: float, factor: float, values: list[float]) -> list[Band]:
    """Bands of the classic slips, as wide as the square root of `factor`. Raises HarnessError where
    one touches the accepted band: a slip that counts as right, or a message for a right answer."""
    accepted = band(answer, factor)
    found = []
    for value in values:
        each = band(value, factor**0.5)
        if each.low <= accepted.high and accepted.low <= each.high:
            raise HarnessError(f"the slip {value:g} cannot be told from the answer {answer:g}")
        found.append(each)
    return found


def rises(values: list[float]) -> bool:
    """Whether each value is above the one before."""
    return all(low < high for low, high in pairwise(values))
