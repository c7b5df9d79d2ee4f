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
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from locust import User, task  # first: it makes the standard library cooperative
from locust.env import Environment
from locust.exception import StopUser

import gevent  # isort: skip

from harness.errors import HarnessError
from harness.load.alarm import Alarm
from harness.load.clock import take_anchor
from harness.load.phases import Cell, Phase
from harness.load.plan import LoadPlan, PlannedRequest, Turns, read_settings, read_turns
from harness.load.spool import SpoolWriter
from harness.load.stream import Connection, Exchange

ANCHOR_EVERY_S = 0.5


class StreamUser(User):
    """One slot. A Locust task that lasts as long as the cell."""

    cell: ClassVar[Cell]

    @task
    def work(self) -> None:
        cell = self.cell
        if cell.warmup.opened.is_set():  # Locust makes up for a worker that it misses
            raise StopUser
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
    plan, environment = read_settings(path), new_environment()

    def start(cell: Cell) -> None:
        cell.expect(plan.in_flight)
        environment.create_local_runner().start(plan.in_flight, spawn_rate=plan.in_flight)

    return run_cell(plan, read_turns(path), environment, start)


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
    start(cell)  # waits for load machines that are still to join
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
    while not cell.warmup.opened.wait(ANCHOR_EVERY_S):
        cell.spool.anchor(take_anchor())
    while True:
        progress = (cell.warmup.done + cell.measured.done, cell.latest_due_ns)
        if progress != watched:
            watched = progress
            ahead_s = max(cell.latest_due_ns - time.monotonic_ns(), 0) / 1e9
            faulthandler.dump_traceback_later(2 * cell.plan.timeout_s + ahead_s + 60, exit=True)
        gevent.sleep(ANCHOR_EVERY_S)
        cell.spool.anchor(take_anchor())
