"""The clock of a load machine against the master's, and its recording brought onto that clock.

Each machine counts monotonic time from its own start, at its own pace. The offset is measured by
ping-pong as NTP does it (RFC 5905): of many round trips the shortest one, whose true offset lies
within half of its length of the middle. Measured before and after the load, it is interpolated in
between: two quartz clocks drift apart by tens of microseconds in a second.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.load.clock import Anchor
from harness.load.spool import SpoolWriter, read_anchors, read_requests


@dataclass(frozen=True, slots=True)
class Offset:
    """master_minus_worker_ns, seen at worker_ns on the worker's clock; right within
    uncertainty_ns."""

    worker_ns: int
    master_minus_worker_ns: int
    uncertainty_ns: int


def clock_name() -> str:
    """The same for all processes whose monotonic clocks are one."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {os.readlink('/proc/self/ns/time')}"


def offset_of(round_trips: Iterable[tuple[int, int, int]]) -> Offset:
    """From round trips (sent by the worker, seen by the master, back at the worker), in ns, each on
    the clock of whoever saw it."""
    sent, seen, back = min(round_trips, key=lambda trip: trip[2] - trip[0])
    middle = (sent + back) // 2
    return Offset(middle, seen - middle, (back - sent + 1) // 2)


class MasterClock:
    """Converts a worker's monotonic times to the master's; before the first and after the last
    measurement the offset goes on changing at the same pace."""

    def __init__(self, first: Offset, last: Offset) -> None:
        self._first = first
        self._drift_ns = last.master_minus_worker_ns - first.master_minus_worker_ns
        self._span_ns = last.worker_ns - first.worker_ns
        self.uncertainty_ns = max(first.uncertainty_ns, last.uncertainty_ns)

    def at(self, worker_ns: int) -> int:
        offset_ns = self._first.master_minus_worker_ns
        if self._drift_ns:
            since_ns = worker_ns - self._first.worker_ns
            offset_ns += self._drift_ns * since_ns // self._span_ns
        return worker_ns + offset_ns

    def back(self, master_ns: int) -> int:
        """The worker's time of a master's, by the first measurement alone."""
        return master_ns - self._first.master_minus_worker_ns

    def summary(self) -> dict[str, Any]:
        return {
            "offset_ns": self._first.master_minus_worker_ns,
            "uncertainty_ns": self.uncertainty_ns,
            "drift_ppm": self._drift_ns / self._span_ns * 1e6 if self._span_ns else 0.0,
        }


def move_spool(path: Path, clock: MasterClock) -> None:
    """Rewrites a worker's spool onto the master's monotonic clock. The kernel's stamps stay as they
    are, on the worker's wall clock: the moved anchors tell what they mean."""
    moved = path.with_name(path.name + ".moved")
    spool = SpoolWriter(moved)
    for anchor in read_anchors(path):
        spool.anchor(_moved_anchor(anchor, clock))
    for raw in read_requests(path):
        spool.request(
            replace(
                raw,
                scheduled_ns=clock.at(raw.scheduled_ns),
                sent_ns=None if raw.sent_ns is None else clock.at(raw.sent_ns),
                ended_ns=clock.at(raw.ended_ns),
                read_user_ns=[clock.at(t_ns) for t_ns in raw.read_user_ns],
            )
        )
    spool.close()
    moved.replace(path)


def _moved_anchor(anchor: Anchor, clock: MasterClock) -> Anchor:
    mono_ns = clock.at(anchor.mono_ns)
    wall_ns = anchor.mono_ns + anchor.realtime_minus_mono_ns
    return Anchor(mono_ns, wall_ns - mono_ns, anchor.width_ns)
