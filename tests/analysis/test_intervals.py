"""The interval against a worked example, its symmetry, and its coverage in a simulation."""

from itertools import product
from math import inf, sqrt

import numpy as np
import pytest

from harness.analysis.intervals import bootstrap_t


def by_hand(values: list[float]) -> tuple[float, float]:
    """Every resample on its own, the plain way."""
    n, mean = len(values), float(np.mean(values))
    error = float(np.std(values, ddof=1)) / sqrt(n)
    scaled = []
    for pick in product(values, repeat=n):
        own = float(np.std(pick, ddof=1)) / sqrt(n)
        far = float(np.mean(pick)) - mean
        scaled.append(far / own if own > 1e-9 else np.copysign(inf, far))
    scaled.sort()
    at = [-(-len(scaled) * part // 1000) - 1 for part in (25, 975)]  # ceil(q n), from 0
    return mean - scaled[at[1]] * error, mean - scaled[at[0]] * error


@pytest.mark.parametrize("values", [[1.0, 2.0, 4.0, 8.0], [3.0, 1.0, 4.0, 1.5, 9.0]])
def test_the_multisets_stand_for_every_resample(values: list[float]) -> None:
    assert bootstrap_t(values) == pytest.approx(by_hand(values))


def test_swapping_the_sides_mirrors_the_interval() -> None:
    values = [0.1, 0.3, -0.2, 0.5, 0.4]
    low, high = bootstrap_t(values)
    assert bootstrap_t([-each for each in values]) == pytest.approx((-high, -low))


def test_equal_values_leave_no_doubt_and_three_values_no_interval() -> None:
    assert bootstrap_t([2.0, 2.0, 2.0, 2.0]) == (2, 2)
    with pytest.raises(ValueError, match="at least 4"):
        bootstrap_t([1.0, 2.0, 3.0])


def test_values_that_hardly_differ_bound_nothing() -> None:
    low, high = bootstrap_t([0.0, 0.0, 0.0, 0.0, 1.0])
    assert low < 0.2 and high == inf


def test_more_than_eight_repeats_are_drawn_and_always_the_same() -> None:
    values = [float(each) for each in range(10)]
    low, high = bootstrap_t(values)
    assert low < 4.5 < high and bootstrap_t(values) == (low, high)


@pytest.mark.parametrize("kind", ["normal", "heavy", "skewed"])
def test_five_repeats_cover_the_mean_in_about_95_of_100(kind: str) -> None:
    rng = np.random.default_rng(7)
    drawn = {
        "normal": rng.normal(0, 1, (1000, 5)),
        "heavy": rng.standard_t(3, (1000, 5)),
        "skewed": rng.exponential(1, (1000, 5)) - 1,
    }[kind]
    covered = [low <= 0 <= high for low, high in map(bootstrap_t, drawn)]
    assert 0.92 <= np.mean(covered) <= 0.97
