"""Against values worked out by hand or published."""

import random

import pytest

from harness.statistics import (
    drift,
    miss_chance,
    samples_needed,
    supported_percentile,
    window_levels,
)


@pytest.mark.parametrize(("percentile", "samples"), [(50, 11), (90, 64), (95, 130), (99, 662)])
def test_samples_needed_are_those_that_mlperf_publishes(percentile: float, samples: int) -> None:
    assert samples_needed(percentile) == samples


def test_the_chance_is_the_binomial_tail() -> None:
    assert miss_chance(2, 50) == 0.75  # of HH HT TH TT three have at most one head
    assert miss_chance(0, 50) == 1
    assert 0.99**459 < 0.01 < 0.99**458  # with no sample forgiven


def test_supported_percentile_is_the_highest_that_so_many_samples_allow() -> None:
    assert [supported_percentile(n) for n in (0, 1, 11, 64, 661, 662)] == [0, 0, 53, 90, 98.9, 99]


def test_a_perfect_trend_is_a_drift() -> None:
    found = drift([10, 11, 12, 13, 14, 15])
    assert found is not None
    assert found.p == pytest.approx(2 / 720)  # two of the 6! orders are as extreme
    assert found.change_frac == pytest.approx(5 / 12.5) and not found.steady


def test_a_small_trend_a_flat_line_and_an_outlier_are_steady() -> None:
    small = drift([100, 101, 102, 103, 104, 105])
    flat = drift([5, 5, 5, 5, 5, 5])
    outlier = drift([5, 6, 5, 90, 6, 5, 6, 5])
    assert small is not None and small.p < 0.01 and small.steady
    assert flat is not None and (flat.p, flat.change_frac) == (1, 0)
    assert outlier is not None and outlier.steady
    assert drift([1, 2, 3, 4, 5]) is None


def test_no_more_than_one_steady_series_in_a_hundred_is_called_a_drift() -> None:
    random.seed(1)
    found = [drift([random.gauss(100, 30) for _ in range(8)]) for _ in range(2000)]
    assert sum(not each.steady for each in found if each) <= 20


def test_windows_are_of_equal_size_and_hold_a_wave() -> None:
    assert window_levels(range(16)) == [0.5, 2.5, 4.5, 6.5, 8.5, 10.5, 12.5, 14.5]
    assert window_levels([1, 2, 3, 1, 2, 3, 1, 2, 9], in_flight=3) == [2, 2, 2]
    assert window_levels([], in_flight=3) == [] == window_levels([1], in_flight=2)
