"""What the slots of one load process share: the plan ahead, its two phases, and where they meet."""

import os
import time
from array import array
from collections.abc import Callable, Iterator

from gevent.event import Event

from harness.load.plan import LoadPlan, PlannedRequest, Turns
from harness.load.spool import RawRequest, SpoolWriter
from harness.load.stream import Exchange


class _Ahead:
    """Sessions of a plan in order, the next one in view."""

    def __init__(self, turns: Iterator[Turns]) -> None:
        self._turns = turns
        self.next = next(turns, None)

    def take(self) -> Turns | None:
        taken, self.next = self.next, next(self._turns, None)
        return taken


class Phase:
    """The requests of one phase, taken in order; it starts when opened and ends with its last."""

    def __init__(self, name: str, plan: _Ahead, min_requests: float, min_s: float) -> None:
        self.name = name
        self._plan = plan
        self._min_requests = min_requests
        self._min_ns = round(min_s * 1e9)
        self.opened = Event()
        self.started_ns = 0
        self.cpu_s = 0.0  # CPU time that the process had used when the phase started
        self.done = 0
        self.scheduled = False  # its requests have due times

    def open(self, started_ns: int) -> None:
        self.cpu_s = time.process_time()
        self.started_ns = started_ns
        self.opened.set()

    @property
    def enough(self) -> bool:
        """A closed loop has met both of its minimums."""
        long_enough = time.monotonic_ns() - self.started_ns >= self._min_ns
        return not self.scheduled and self.done >= self._min_requests and long_enough

    def take(self) -> Turns | None:
        """The next session; None where the minimums are met or the phase has no more."""
        ahead = self._plan.next
        if ahead is None or ahead[0].phase != self.name:
            return None
        self.scheduled = ahead[0].due_ns is not None
        return None if self.enough else self._plan.take()


class Cell:
    """What the slots of one process share.

    slots: how many there will be, once known. at_barrier(phase): called when every slot waits for
    that phase to be opened.
    """

    def __init__(self, plan: LoadPlan, turns: Iterator[Turns], spool: SpoolWriter) -> None:
        self.plan = plan
        self.spool = spool
        ahead = _Ahead(turns)
        self.warmup = Phase("warmup", ahead, float("inf"), 0.0)
        self.measured = Phase("measured", ahead, plan.min_requests, plan.min_duration_s)
        self.phases = (self.warmup, self.measured)
        self.at_barrier: Callable[[Phase], None] = lambda phase: phase.open(time.monotonic_ns())
        self.slots: int | None = None
        self.over = Event()
        self.fault: BaseException | None = None
        self.latest_due_ns = 0
        self.lags_ns = array("q")  # of measured requests: sent minus scheduled
        self.api_key = os.environ.get("OPENAI_API_KEY") or None
        self._numbers = iter(range(1_000_000))
        self._waiting = 0

    def enter(self) -> int:
        self._wait_at(self.warmup)
        return next(self._numbers)

    def leave(self, phase: Phase) -> None:
        """A slot found nothing more to do in a phase."""
        self._wait_at(self.measured if phase is self.warmup else None)

    def expect(self, slots: int) -> None:
        self.slots = slots
        if self._waiting == slots:
            self._all_wait_at(self.warmup)

    def _wait_at(self, phase: Phase | None) -> None:
        self._waiting += 1
        if self._waiting == self.slots:
            self._all_wait_at(phase)

    def _all_wait_at(self, phase: Phase | None) -> None:
        self._waiting = 0
        self.at_barrier(phase) if phase else self.over.set()

    def record(self, slot: int, request: PlannedRequest, due_ns: int, result: Exchange) -> None:
        self.spool.request(
            RawRequest(
                request.request_id,
                request.phase,
                slot,
                due_ns,
                result.sent_ns,
                result.ended_ns,
                result.error,
                result.user_ns,
                result.kernel_ns,
                result.sizes,
                bytes(result.data),
            )
        )
        if request.phase == "warmup":
            self.warmup.done += 1
            return
        self.measured.done += 1
        if result.sent_ns is not None:
            self.lags_ns.append(result.sent_ns - due_ns)
