import time
from pathlib import Path
from typing import Any

import pytest

from harness.load.phases import Cell, Phase
from harness.load.plan import LoadPlan, PlannedRequest
from harness.load.spool import SpoolWriter
from harness.load.stream import Exchange


def cell(folder: Path, requests: list[PlannedRequest], **changes: Any) -> Cell:
    settings: dict[str, Any] = {"in_flight": 2, "min_requests": 2, "min_duration_s": 0.0}
    plan = LoadPlan(
        url="http://127.0.0.1:1/",
        timeout_s=1.0,
        cores=(),
        spool_path=str(folder / "spool"),
        **{**settings, **changes},
    )
    return Cell(plan, ((request,) for request in requests), SpoolWriter(folder / "spool"))


def measured(count: int, **fields: Any) -> list[PlannedRequest]:
    return [PlannedRequest(number, "measured", "{}", **fields) for number in range(1, count + 1)]


def take(phase: Phase, done: bool = True) -> int | None:
    turns = phase.take()
    phase.done += done and turns is not None
    return turns[0].request_id if turns else None


def test_a_phase_takes_its_own_requests_alone(tmp_path: Path) -> None:
    one = cell(tmp_path, [PlannedRequest(9, "warmup", "{}"), *measured(1)])
    assert [take(one.warmup), take(one.warmup)] == [9, None]
    assert [take(one.measured), take(one.measured)] == [1, None]


def test_a_closed_loop_takes_until_both_minimums_are_met(tmp_path: Path) -> None:
    requests = cell(tmp_path, measured(9)).measured
    requests.open(time.monotonic_ns())
    assert [take(requests) for _ in range(3)] == [1, 2, None]
    long = cell(tmp_path, measured(9), min_duration_s=60.0).measured
    long.open(time.monotonic_ns())
    assert [take(long) for _ in range(3)] == [1, 2, 3]
    long.open(time.monotonic_ns() - 60_000_000_000)
    assert take(long) is None


def test_an_open_loop_takes_all_that_is_scheduled(tmp_path: Path) -> None:
    phase = cell(tmp_path, measured(5, due_ns=0)).measured
    phase.open(time.monotonic_ns())
    assert [take(phase) for _ in range(6)] == [1, 2, 3, 4, 5, None]
    assert phase.enough is False


@pytest.mark.parametrize("late", [False, True])
def test_a_phase_opens_when_all_slots_wait_for_it(tmp_path: Path, late: bool) -> None:
    shared = cell(tmp_path, [])
    opened: list[str] = []
    shared.at_barrier = lambda phase: opened.append(phase.name)
    if not late:
        shared.expect(2)
    assert [shared.enter(), opened] == [0, []]
    shared.enter()
    if late:  # Locust tells how many there are when they are there
        shared.expect(2)
    assert opened == ["warmup"]
    shared.leave(shared.warmup)
    assert opened == ["warmup"]
    shared.leave(shared.warmup)
    assert opened == ["warmup", "measured"]
    shared.leave(shared.measured)
    assert not shared.over.is_set()
    shared.leave(shared.measured)
    assert shared.over.is_set()


def test_lags_are_of_measured_requests_that_were_sent(tmp_path: Path) -> None:
    shared = cell(tmp_path, [])
    late, unsent = Exchange(), Exchange()
    late.sent_ns, unsent.error = 70, "connection refused"
    shared.record(0, PlannedRequest(1, "warmup", "{}"), 10, late)
    shared.record(0, PlannedRequest(2, "measured", "{}"), 20, late)
    shared.record(0, PlannedRequest(3, "measured", "{}"), 20, unsent)
    assert list(shared.lags_ns) == [50]
    assert (shared.warmup.done, shared.measured.done) == (1, 2)
