"""From the kernel's receive stamps (wall clock) to the monotonic clock that everything else uses.

SO_TIMESTAMPNS stamps in CLOCK_REALTIME, which NTP may slew or step. Anchors (both clocks read side
by side) are taken all through a run, and a stamp is converted with the two anchors around it.
"""

import time
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

ANCHOR_TRIES = 32
STEP_NS = 1_000_000  # NTP slews by at most 0.5 ms a second, and anchors are 0.5 s apart


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
    and after the last the nearest offset holds. Where the offset moved by more than STEP_NS from
    one anchor to the next, the wall clock was stepped in between, and no stamp there can be
    converted.
    """

    def __init__(self, anchors: Iterable[Anchor]) -> None:
        self._anchors = sorted(anchors, key=lambda anchor: anchor.mono_ns)
        if not self._anchors:
            raise ValueError("a clock needs at least one anchor")
        self._monos = [anchor.mono_ns for anchor in self._anchors]

    def to_mono(self, realtime_ns: int, seen_ns: int) -> int | None:
        """Monotonic time of a stamp that user space saw at seen_ns (monotonic); None: unknown."""
        after = bisect_right(self._monos, seen_ns)
        first = self._anchors[max(after - 1, 0)]
        then = self._anchors[min(after, len(self._anchors) - 1)]
        drift = then.realtime_minus_mono_ns - first.realtime_minus_mono_ns
        if abs(drift) > STEP_NS:
            return None
        mono = realtime_ns - first.realtime_minus_mono_ns
        if drift:
            mono -= drift * (mono - first.mono_ns) // (then.mono_ns - first.mono_ns)
        return mono
