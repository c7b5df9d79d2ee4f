"""What the load process is told to do, and nothing else: it never sees the experiment file.

A plan file is JSON lines: the settings, then one request a line, warm-up first. It is written and
read lazily, so that a million requests never lie in memory.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import HarnessError


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """One request of a plan.

    body: the HTTP body as JSON text. due_ns: offset from the start of its phase at which it is to
    be sent; None in a closed loop, where it is sent as soon as a slot is free. Requests next to
    each other with the same session are its turns: one slot sends them in order, each think_ns
    after the one before it has ended; the due_ns of the first alone counts.
    """

    request_id: int
    phase: str  # "warmup" | "measured"
    body: str
    due_ns: int | None = None
    session: int | None = None
    think_ns: int = 0


Turns = tuple[PlannedRequest, ...]  # of one session; one request where there are no sessions


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """The settings of one cell for the load process.

    in_flight: slots, each with a connection of its own. A closed loop ends when at least
    min_requests measured requests are done and min_duration_s has passed since the measured phase
    began, whichever comes later. Where requests have a due time, all of them are sent and awaited,
    and the duration is theirs. Warm-up requests all finish before the measured phase begins.
    timeout_s bounds one request. cores: CPUs to pin the processes to in turn, at real-time
    priority where that is permitted; none: neither.
    """

    url: str  # http://127.0.0.1:8000/v1/completions
    in_flight: int
    min_requests: int
    min_duration_s: float
    timeout_s: float
    cores: tuple[int, ...]
    spool_path: str

    def spools(self, processes: int) -> tuple[Path, ...]:
        """Where each of the load processes leaves its recording."""
        if processes == 1:
            return (Path(self.spool_path),)
        return tuple(Path(f"{self.spool_path}.{index}") for index in range(processes))


def save_plan(path: Path, plan: LoadPlan, requests: Iterable[PlannedRequest]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(_line(plan))
        file.writelines(map(_line, requests))


def read_settings(path: Path) -> LoadPlan:
    with open(path, encoding="utf-8") as file:
        settings = _record(path, 1, file.readline())
    return LoadPlan(**settings | {"cores": tuple(settings["cores"])})


def read_turns(path: Path) -> Iterator[Turns]:
    """The requests of a plan file in order, a session at a time. Raises HarnessError at a line that
    is torn or no request."""
    with open(path, encoding="utf-8") as file:
        file.readline()
        turns: Turns = ()
        for number, line in enumerate(file, start=2):
            try:
                request = PlannedRequest(**_record(path, number, line))
            except TypeError as fault:
                raise HarnessError(f"{path}:{number}: not a planned request: {fault}") from fault
            first = turns[0] if turns else None
            if first and request.session is not None and request.session == first.session:
                turns += (request,)
                continue
            if turns:
                yield turns
            turns = (request,)
        if turns:
            yield turns


def shard(path: Path, index: int, count: int) -> Iterator[str]:
    """The lines of the plan that one of `count` processes gets: every count-th session, from the
    index-th on, and its part of the minimum."""
    plan = read_settings(path)
    yield _line(replace(plan, min_requests=-(-plan.min_requests // count)))
    for number, turns in enumerate(read_turns(path)):
        if number % count == index:
            yield from map(_line, turns)


def _line(record: LoadPlan | PlannedRequest) -> str:
    fields = {name: getattr(record, name) for name in record.__slots__}
    return json.dumps(fields) + "\n"  # asdict would copy deeply, and take most of the time


def _record(path: Path, number: int, line: str) -> dict:
    try:
        if not line.endswith("\n"):
            raise ValueError("the line is torn")
        record = json.loads(line)
        if not isinstance(record, dict):
            raise ValueError("no object")
        return record
    except ValueError as fault:
        raise HarnessError(f"{path}:{number}: not a line of a plan: {fault}") from fault
