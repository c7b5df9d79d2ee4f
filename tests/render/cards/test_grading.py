import pytest

from harness.errors import HarnessError
from harness.render.cards import grading


def test_a_band_is_a_ratio_to_both_sides() -> None:
    assert grading.band(100, 1.25) == grading.Band(80, 125)
    assert grading.band(100, 1.25).holds(80) and not grading.band(100, 1.25).holds(79.9)
    with pytest.raises(HarnessError, match="above zero"):
        grading.band(0, 2)


def test_units_are_counted_in_the_unit_of_the_answer() -> None:
    ms = grading.units("ms")
    assert (ms[""], ms["ms"], ms["s"], ms["min"]) == (1, 1, 1000, 60_000)
    size = grading.units("GB")
    assert size["gb"] == 1 and size["mb"] == 1e-3 and size["gib"] == 1.073741824
    tokens = grading.units("tokens")
    assert tokens["k"] == tokens["k tokens"] == 1000 and tokens["token"] == 1
    assert "gb" not in tokens and "tokens" not in ms
    assert grading.units("%") == {"": 1, "%": 1, "percent": 1}


def test_a_slip_may_not_touch_what_is_right() -> None:
    (slip,) = grading.slip_bands(100, 1.21, [200])
    assert slip.low == pytest.approx(200 / 1.1) and slip.high == pytest.approx(220)
    with pytest.raises(HarnessError, match="the slip 130 cannot be told from the answer 100"):
        grading.slip_bands(100, 1.21, [130])


def test_an_order_rises() -> None:
    assert grading.rises([1, 2, 3]) and not grading.rises([1, 1]) and not grading.rises([2, 1])
