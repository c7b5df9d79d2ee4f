"""What a sample can support: the percentile that may be quoted, and whether it held still.

Pure functions of numbers, so that a verdict that rests on them can be made again from the rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, count

import numpy as np

MISS_FRAC = 0.01  # accepted chance that a percentile lies beyond what the sample can bound
WINDOWS = 8  # of a measured phase
MIN_WINDOWS = 6  # the fewest in which a perfect trend has p < 0.01: 2 of 720 orders
DRIFT_P = 0.01  # a drift is one that chance makes in fewer than 1 of 100 steady cells,
DRIFT_FRAC = 0.1  # and that moved the level by more than this share over the phase


def miss_chance(samples: int, percentile: float) -> float:
    """Chance that at most one of `samples` lies above the true percentile.

    q^n + n (1 - q) q^(n - 1) with q = percentile / 100, the lower tail of a binomial. Where it is
    small, the second largest sample is almost surely above the percentile: the sample bounds it,
    and one outlier alone does not. This is the floor of MLPerf's early stopping at its 99 %
    confidence, 662 for p99 (were no outlier forgiven, q^n alone, 459 would do):
    https://github.com/mlcommons/endpoints/blob/main/docs/early_stopping.md
    """
    q = percentile / 100
    return q**samples + samples * (1 - q) * q ** (samples - 1) if samples > 0 else 1.0


def samples_needed(percentile: float) -> int:
    """Fewest samples that support a percentile below 100: 11 for p50, 64 for p90, 662 for p99."""
    return next(n for n in count(1) if miss_chance(n, percentile) <= MISS_FRAC)


def supported_percentile(samples: int) -> float:
    """Highest percentile that so many samples support, in tenths, rounded down; 0.0 for none."""
    tenths = (t for t in range(999, 0, -1) if miss_chance(samples, t / 10) <= MISS_FRAC)
    return next(tenths, 0) / 10


@dataclass(frozen=True, slots=True)
class Drift:
    """Of the levels of consecutive windows.

    change_frac: by what share of the median the level moved from the first window to the last,
    along the median slope. p: two-sided chance of so clear an order where nothing moves.
    """

    change_frac: float
    p: float

    @property
    def steady(self) -> bool:
        return self.p >= DRIFT_P or abs(self.change_frac) <= DRIFT_FRAC


def window_levels(values: Sequence[float], in_flight: int = 1) -> list[float]:
    """Medians of at most eight windows of equally many consecutive values.

    values: in the order of their requests' start. A window holds at least `in_flight` of them:
    requests that start together queue behind one another, and that order is no drift.
    """
    windows = min(WINDOWS, len(values) // max(1, in_flight))
    return [float(np.median(part)) for part in np.array_split(values, windows)] if windows else []


def drift(levels: Sequence[float]) -> Drift | None:
    """Mann and Kendall's test for a trend, and Theil and Sen's slope; None below six windows.

    The test counts the pairs whose later level is the higher one, so no outlier decides it. The
    null distribution is exact: the inversions of a random order (a tie counts for neither side).
    """
    n = len(levels)
    if n < MIN_WINDOWS:
        return None
    pairs = [(b - a, j - i) for (i, a), (j, b) in combinations(enumerate(levels), 2)]
    score = abs(sum((rise > 0) - (rise < 0) for rise, _ in pairs))
    orders = np.ones(1)  # how many orders of n levels have 0, 1, 2, ... inversions
    for size in range(2, n + 1):
        orders = np.convolve(orders, np.ones(size))
    extreme = np.abs(2 * np.arange(len(orders)) - len(pairs)) >= score
    slope = float(np.median([rise / distance for rise, distance in pairs]))
    middle = float(np.median(levels))
    change_frac = slope * (n - 1) / middle if middle else 0.0
    return Drift(change_frac, float(orders[extreme].sum() / orders.sum()))
