import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.load.clock import Anchor, Clock, take_anchor


def test_one_anchor_shifts_by_its_offset() -> None:
    clock = Clock([Anchor(mono_ns=100, realtime_minus_mono_ns=1_000_000, width_ns=10)])
    assert clock.to_mono(1_000_250, seen_ns=260) == 250
    assert clock.to_mono(1_000_050, seen_ns=60) == 50


def test_between_two_anchors_the_offset_is_interpolated() -> None:
    # The wall clock gains 40 ns over 1,000 ns of monotonic time: 1,040 ns of wall clock.
    clock = Clock([Anchor(1000, 5040, 10), Anchor(0, 5000, 10)])
    assert clock.to_mono(5000, 0) == 0
    assert clock.to_mono(5520, 500) == pytest.approx(500, abs=1)  # half-way: offset 5,020
    assert clock.to_mono(6140, 1100) == 1100  # after the last anchor its offset holds
    assert clock.to_mono(4900, -100) == -100  # before the first, too


def test_a_step_of_the_wall_clock_is_not_interpolated() -> None:
    # Half a second between anchors; the wall clock was put forward, or back, by a second.
    for step_ns in (10**9, -(10**9)):
        anchors = [Anchor(0, 5 * 10**9, 10), Anchor(5 * 10**8, 5 * 10**9 + step_ns, 10)]
        clock = Clock([*anchors, Anchor(10**9, 5 * 10**9 + step_ns, 10)])
        assert clock.to_mono(5 * 10**9 + 2 * 10**8, seen_ns=2 * 10**8) is None
        assert clock.to_mono(5 * 10**9 + step_ns + 7 * 10**8, seen_ns=7 * 10**8) == 7 * 10**8


def test_a_clock_needs_an_anchor() -> None:
    with pytest.raises(ValueError, match="at least one anchor"):
        Clock([])


def test_an_anchor_lies_between_two_readings_and_converts_now() -> None:
    before = time.monotonic_ns()
    anchor = take_anchor()
    after = time.monotonic_ns()
    assert before <= anchor.mono_ns <= after
    assert 0 <= anchor.width_ns < 1_000_000
    assert (
        abs((Clock([anchor]).to_mono(time.time_ns(), after) or 0) - time.monotonic_ns())
        < 50_000_000
    )


@given(st.lists(st.integers(-500, 500), min_size=1, max_size=8), st.integers(0, 10**7))
def test_a_slewed_clock_is_followed(drifts: list[int], at: int) -> None:
    anchors = [Anchor(i * 10**6, 10**12 + drift, 1) for i, drift in enumerate(drifts)]
    mono = Clock(anchors).to_mono(10**12 + at, seen_ns=at)
    assert mono is not None and abs(mono - at) <= 500
