"""The load of one process: Locust users as slots, each with one connection, over one shared plan.

Locust's Environment, runners and User carry the slots; its statistics and its CPU warning are used.
Closed loop: a slot sends its next request when its last one has ended. Where a request has a due
time, the slot that takes it waits for that absolute deadline; where every slot is busy it is sent
late, and the lateness is in the record (sent minus scheduled).
"""

import faulthandler
import gc
import logging
import os
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from locust import User, task  # first: it makes the standard library cooperative
from locust.env import Environment
from locust.exception import StopUser

import gevent  # isort: skip
from gevent.event import Event  # isort: skip

from harness.errors import HarnessError
from harness.load.alarm import Alarm
from harness.load.clock import take_anchor
from harness.load.plan import LoadPlan, PlannedRequest, Turns, read_settings, read_turns
from harness.load.spool import RawRequest, SpoolWriter
from harness.load.stream import Connection, Exchange

ANCHOR_EVERY_S = 0.5


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


class StreamUser(User):
    """One slot. A Locust task that lasts as long as the cell."""

    cell: ClassVar[Cell]

    @task
    def work(self) -> None:
        cell = self.cell
        try:
            connection, alarm = Connection(cell.plan.url, cell.api_key), Alarm()
            # Before the start, so that connecting delays no request; one that fails says why.
            with gevent.Timeout(cell.plan.timeout_s, False), suppress(OSError):
                connection.open()
            slot = cell.enter()
            for phase in cell.phases:
                phase.opened.wait()
                self._run(phase, slot, connection, alarm)
                cell.leave(phase)
            connection.close()
            alarm.close()
        except Exception as fault:  # a full disk, a torn plan, a bug: the cell must end and say why
            cell.fault = fault
            cell.over.set()
        raise StopUser

    def _run(self, phase: Phase, slot: int, connection: Connection, alarm: Alarm) -> None:
        cell = self.cell
        free_ns = phase.started_ns
        while (turns := phase.take()) is not None:
            due_ns = free_ns if turns[0].due_ns is None else phase.started_ns + turns[0].due_ns
            for number, turn in enumerate(turns):
                if number:
                    if phase.enough:
                        break
                    due_ns = free_ns + turn.think_ns
                cell.latest_due_ns = max(cell.latest_due_ns, due_ns)
                alarm.wait_until(due_ns)
                result = connection.exchange(turn.body.encode(), cell.plan.timeout_s)
                free_ns = result.ended_ns
                cell.record(slot, turn, due_ns, result)
                self._tell_locust(turn, result)

    def _tell_locust(self, request: PlannedRequest, result: Exchange) -> None:
        bad_status = None if result.status == 200 else f"HTTP {result.status}"
        failure = result.error or bad_status
        self.environment.events.request.fire(
            request_type="POST",
            name=request.phase,
            response_time=(result.ended_ns - (result.sent_ns or result.ended_ns)) / 1e6,
            response_length=len(result.data),
            exception=RuntimeError(failure) if failure else None,
            context={},
        )


def run_alone(path: Path) -> dict[str, Any]:
    """Runs a whole plan in this process; returns its part (see run_cell)."""
    plan = read_settings(path)

    def start(cell: Cell, environment: Environment) -> None:
        runner = environment.create_local_runner()
        cell.expect(plan.in_flight)
        runner.start(plan.in_flight, spawn_rate=plan.in_flight)

    environment = new_environment()
    return run_cell(plan, read_turns(path), environment, lambda cell: start(cell, environment))


def new_environment() -> Environment:
    logging.getLogger("locust").setLevel(logging.ERROR)
    return Environment(user_classes=[StreamUser])


def run_cell(
    plan: LoadPlan,
    turns: Iterator[Turns],
    environment: Environment,
    start: Callable[[Cell], None],
) -> dict[str, Any]:
    """Runs this process's share to its end. Raises what stopped it, if anything.

    start: makes Locust spawn the users, and tells the cell how many. Returns this process's part of
    the cell, for summary.merge; lags_ns: of every measured request that was sent.
    """
    try:
        return _run_cell(plan, turns, environment, start)
    except OSError as fault:  # a full disk, too many open files
        raise HarnessError(f"{fault.strerror} ({plan.spool_path})") from fault


def _run_cell(
    plan: LoadPlan,
    turns: Iterator[Turns],
    environment: Environment,
    start: Callable[[Cell], None],
) -> dict[str, Any]:
    started_ns = time.monotonic_ns()
    spool = SpoolWriter(Path(plan.spool_path))
    cell = StreamUser.cell = Cell(plan, turns, spool)
    warnings: list[float] = []
    environment.events.cpu_warning.add_listener(lambda cpu_usage, **_: warnings.append(cpu_usage))
    spool.anchor(take_anchor())
    gc.collect()
    gc.freeze()
    gc.disable()
    keeper = gevent.spawn(_keep_time, cell)
    start(cell)
    cell.over.wait()
    cpu_s, ended_ns = time.process_time() - cell.measured.cpu_s, time.monotonic_ns()
    keeper.kill()
    faulthandler.cancel_dump_traceback_later()
    if cell.fault:
        raise cell.fault
    spool.anchor(take_anchor())
    spool.close()
    measured = cell.measured
    return {
        "started_ns": started_ns,
        "measured_ns": measured.started_ns,
        "ended_ns": ended_ns,
        "requests": measured.done,
        "scheduled": measured.scheduled,
        "cpu_s": cpu_s,
        "cpu_frac": cpu_s * 1e9 / max(ended_ns - measured.started_ns, 1),
        "lags_ns": cell.lags_ns,
        "locust_cpu_warning": bool(warnings),
        "realtime_priority": os.sched_getscheduler(0) == os.SCHED_FIFO,
    }


def _keep_time(cell: Cell) -> NoReturn:
    """Clock anchors through the run, and a watchdog of its own thread: where no request has ended
    for longer than any may last, it prints where the process hangs and ends it with status 1."""
    watched = (-1, -1)
    while True:
        progress = (cell.warmup.done + cell.measured.done, cell.latest_due_ns)
        if progress != watched:
            watched = progress
            ahead_s = max(cell.latest_due_ns - time.monotonic_ns(), 0) / 1e9
            faulthandler.dump_traceback_later(2 * cell.plan.timeout_s + ahead_s + 60, exit=True)
        gevent.sleep(ANCHOR_EVERY_S)
        cell.spool.anchor(take_anchor())
