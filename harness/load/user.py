"""The load of one cell: Locust users as slots, each with one connection, over one shared plan.

Locust runs as a library: its Environment, LocalRunner and User carry the slots, its statistics and
its CPU warning are used. Closed loop: a slot sends its next request when its last one has ended.
Where a request has a due time, the slot that takes it waits for that absolute deadline.
"""

import faulthandler
import gc
import logging
import math
import os
import time
from array import array
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from locust import User, task  # first: it makes the standard library cooperative
from locust.env import Environment
from locust.exception import StopUser

import gevent  # isort: skip
from gevent.event import Event  # isort: skip

from harness.load.clock import take_anchor
from harness.load.plan import LoadPlan, PlannedRequest
from harness.load.spool import RawRequest, SpoolWriter
from harness.load.stream import Connection, Exchange

ANCHOR_EVERY_S = 0.5


class Phase:
    """The requests of one phase, taken in order; it starts when opened and ends with its last."""

    def __init__(self, requests: list[PlannedRequest], min_requests: int, min_s: float) -> None:
        self._requests = iter(requests)
        self._min_requests = min_requests
        self._min_ns = round(min_s * 1e9)
        self.opened = Event()
        self.started_ns = 0
        self.cpu_s = 0.0  # CPU time that the process had used when the phase started
        self.done = 0

    def open(self) -> None:
        self.cpu_s = time.process_time()
        self.started_ns = time.monotonic_ns()
        self.opened.set()

    @property
    def minimums_met(self) -> bool:
        long_enough = time.monotonic_ns() - self.started_ns >= self._min_ns
        return self.done >= self._min_requests and long_enough

    def take(self) -> PlannedRequest | None:
        """The next request; None where the minimums are met or the plan has no more."""
        return None if self.minimums_met else next(self._requests, None)


class Cell:
    """What the slots of one cell share."""

    def __init__(self, plan: LoadPlan, spool: SpoolWriter) -> None:
        self.plan = plan
        self.spool = spool
        warmup = [request for request in plan.requests if request.phase == "warmup"]
        measured = [request for request in plan.requests if request.phase == "measured"]
        self.warmup = Phase(warmup, len(warmup), 0.0)
        self.measured = Phase(measured, plan.min_requests, plan.min_duration_s)
        self.phases = (self.warmup, self.measured)
        self.slots = 0
        self.over = Event()
        self.fault: BaseException | None = None
        self.measured_lags_ns = array("q")
        self.api_key = os.environ.get("OPENAI_API_KEY") or None
        self._at_barrier = {id(phase): 0 for phase in self.phases}

    def enter(self) -> int:
        self.slots += 1
        if self.slots == self.plan.in_flight:
            self.warmup.open()
        return self.slots - 1

    def leave(self, phase: Phase) -> None:
        """A slot found nothing more to do; the last one opens the next phase, or ends the cell."""
        self._at_barrier[id(phase)] += 1
        if self._at_barrier[id(phase)] == self.plan.in_flight:
            self.measured.open() if phase is self.warmup else self.over.set()

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
        if request.phase == "measured":
            self.measured.done += 1
            if result.sent_ns is not None:
                self.measured_lags_ns.append(result.sent_ns - due_ns)
        else:
            self.warmup.done += 1


class StreamUser(User):
    """One slot. A Locust task that lasts as long as the cell."""

    cell: ClassVar[Cell]

    @task
    def work(self) -> None:
        cell = self.cell
        try:
            connection = Connection(cell.plan.url, cell.api_key)
            # Before the start, so that connecting delays no request; one that fails says why.
            with gevent.Timeout(cell.plan.timeout_s, False), suppress(OSError):
                connection.open()
            slot = cell.enter()
            for phase in cell.phases:
                phase.opened.wait()
                self._run(phase, slot, connection)
                cell.leave(phase)
            connection.close()
        except Exception as fault:  # a full disk, a bug: the cell must end, and say why
            cell.fault = fault
            cell.over.set()
        raise StopUser

    def _run(self, phase: Phase, slot: int, connection: Connection) -> None:
        free_ns = phase.started_ns
        while (request := phase.take()) is not None:
            due_ns = free_ns if request.due_ns is None else phase.started_ns + request.due_ns
            if (early_ns := due_ns - time.monotonic_ns()) > 0:
                gevent.sleep(early_ns / 1e9)
            result = connection.exchange(request.body.encode(), self.cell.plan.timeout_s)
            free_ns = result.ended_ns
            self.cell.record(slot, request, due_ns, result)
            self._tell_locust(request, result)

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


def run_cell(plan: LoadPlan) -> dict[str, Any]:
    """Runs the plan to its end and returns the summary. Raises what stopped it, if anything."""
    started_ns = time.monotonic_ns()
    logging.getLogger("locust").setLevel(logging.ERROR)
    spool = SpoolWriter(Path(plan.spool_path))
    cell = Cell(plan, spool)
    StreamUser.cell = cell
    environment = Environment(user_classes=[StreamUser])
    warnings: list[float] = []
    environment.events.cpu_warning.add_listener(lambda cpu_usage, **_: warnings.append(cpu_usage))
    runner = environment.create_local_runner()
    spool.anchor(take_anchor())
    gc.collect()
    gc.freeze()
    gc.disable()
    keeper = gevent.spawn(_keep_time, cell)
    runner.start(plan.in_flight, spawn_rate=plan.in_flight)
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
        "cpu_s": cpu_s,
        "cpu_frac": cpu_s * 1e9 / (ended_ns - measured.started_ns),
        **_lag_summary(sorted(cell.measured_lags_ns)),
        "locust_cpu_warning": bool(warnings),
        "minimums_met": measured.minimums_met,
    }


def _keep_time(cell: Cell) -> None:
    """Clock anchors through the run, and a watchdog of its own thread: where no request has ended
    for longer than any may last, it prints where the process hangs and ends it with status 1."""
    last_due_s = max((request.due_ns or 0 for request in cell.plan.requests), default=0) / 1e9
    patience_s = 2 * cell.plan.timeout_s + last_due_s + 60
    watched, parent = -1, os.getppid()
    while os.getppid() == parent:  # a recorder that was killed must not leave its load behind
        done = cell.warmup.done + cell.measured.done
        if done != watched:
            watched = done
            faulthandler.dump_traceback_later(patience_s, exit=True)
        gevent.sleep(ANCHOR_EVERY_S)
        cell.spool.anchor(take_anchor())
    os._exit(1)


def _lag_summary(lags_ns: list[int]) -> dict[str, int | None]:
    """Nearest-rank percentiles of sent minus scheduled; None where nothing was sent."""
    ranks = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {
        f"schedule_lag_{name}_ns": lags_ns[math.ceil(share * len(lags_ns)) - 1] if lags_ns else None
        for name, share in ranks.items()
    }
