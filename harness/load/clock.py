"""From the kernel's receive stamps (wall clock) to the monotonic clock that everything else uses.

SO_TIMESTAMPNS stamps in CLOCK_REALTIME, which NTP may slew or step. Anchors (both clocks read side
by side) are taken all through a run, and a stamp is converted with the two anchors around it.
"""

import time
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

ANCHOR_TRIES = 32


@dataclass(frozen=True, slots=True)
class Anchor:
    """Both clocks at one moment. width_ns: the pair is off by at most this much."""

    mono_ns: int
    realtime_minus_mono_ns: int
    width_ns: int


def take_anchor() -> Anchor:
    """The tightest of several back-to-back readings: an interrupt in between widens a reading."""
    best: Anchor | None = None
    for _ in range(ANCHOR_TRIES):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if best is None or after - before < best.width_ns:
            middle = (before + after) // 2
            best = Anchor(middle, wall - middle, after - before)
    assert best is not None
    return best


class Clock:
    """Converts wall-clock stamps, in ns since 1970, to monotonic ns.

    Between two anchors the offset is interpolated, so a slewed clock stays exact; before the first
    and after the last the nearest offset holds.
    """

    def __init__(self, anchors: Iterable[Anchor]) -> None:
        offsets = {a.mono_ns + a.realtime_minus_mono_ns: a.realtime_minus_mono_ns for a in anchors}
        if not offsets:
            raise ValueError("a clock needs at least one anchor")
        self._walls = sorted(offsets)
        self._offsets = [offsets[wall] for wall in self._walls]

    def to_mono(self, realtime_ns: int) -> int:
        after = bisect_right(self._walls, realtime_ns)
        if after == 0:
            return realtime_ns - self._offsets[0]
        if after == len(self._walls):
            return realtime_ns - self._offsets[-1]
        wall, offset = self._walls[after - 1], self._offsets[after - 1]
        span, drift = self._walls[after] - wall, self._offsets[after] - offset
        return realtime_ns - offset - drift * (realtime_ns - wall) // span
