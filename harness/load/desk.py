"""What a master answers its workers: the plan dealt out, one start for all, their recordings.

worker.py asks. This module knows Locust's runner only by its messages, and imports none of it.
"""

import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gevent

from harness.errors import HarnessError
from harness.load.offset import MasterClock, Offset, clock_name, move_spool
from harness.load.plan import read_settings, shard

if TYPE_CHECKING:
    from locust.runners import MasterRunner

SOON_NS = 200_000_000  # from the moment all are ready to the start of a phase
PIECE_LINES = 1000
LOST = -8  # Locust counts a worker's missed heartbeats, one a second, down from 3


@dataclass(slots=True)
class _Worker:
    """What the master knows of one worker."""

    plan: Iterator[str]
    spool: Path
    part: dict[str, Any] | None = None


class Desk:
    """Answers the workers' questions (see worker.py). local: spools of those on this machine."""

    def __init__(self, path: Path, runner: "MasterRunner", local: int, remote: int) -> None:
        self.plan = read_settings(path)
        self.fault: str | None = None
        self.count = local + remote
        self.spools = self.plan.spools(self.count)
        self._path, self._runner = path, runner
        self._free = {str(spool): index for index, spool in enumerate(self.spools)}
        self._elsewhere = [str(spool) for spool in self.spools[local:]]
        self._workers: dict[str, _Worker] = {}
        self._gathered: dict[str, Any] = {}  # worker -> what it said with the question of all
        runner.register_message("ask", self._asked)

    @property
    def complete(self) -> bool:
        return sum(worker.part is not None for worker in self._workers.values()) == self.count

    def collect(self) -> list[dict[str, Any]]:
        """The parts of all workers in the order of the spools, on this machine's clock."""
        ordered = sorted(self._workers.values(), key=lambda worker: self.spools.index(worker.spool))
        return [_on_our_clock(worker.spool, worker.part) for worker in ordered if worker.part]

    @property
    def missing(self) -> int:
        return self.count - len(self._workers)

    def lost(self) -> list[str]:
        """Workers whose heartbeat has stopped before they were done."""
        known = {client.id: client for client in self._runner.clients.all}
        return [
            name
            for name, worker in self._workers.items()
            if worker.part is None and (name not in known or known[name].heartbeat < LOST)
        ]

    def _asked(self, environment: Any, msg: Any) -> None:
        now_ns = time.monotonic_ns()
        who, what, data = msg.node_id, msg.data["what"], msg.data["data"]
        if what == "ping":
            self._answer(who, now_ns)
            return
        try:
            self._serve(who, what, data)
        except (HarnessError, OSError) as fault:  # a torn plan, a full disk
            self.fault = str(fault)

    def _serve(self, who: str, what: str, data: Any) -> None:
        match what:
            case "hello":
                self._answer(who, self._welcome(who, data))
            case "plan":
                lines = self._workers[who].plan
                piece = [line for _, line in zip(range(PIECE_LINES), lines, strict=False)]
                self._answer(who, "".join(piece))
            case "users" | "open":
                self._gathered[who] = data
                if len(self._gathered) == self.count:
                    gathered, self._gathered = self._gathered, {}
                    gevent.spawn(self._all_asked, what, gathered)
            case "spool":
                with open(self._workers[who].spool, "ab") as file:
                    file.write(data)
                self._answer(who, True)
            case "done":
                self._workers[who].part = data
                self._answer(who, True)
            case _:
                self.fault = f"{who}: {data}"
                self._answer(who, True)

    def _answer(self, who: str, data: Any) -> None:
        self._runner.send_message("answer", data, who)

    def _welcome(self, who: str, hello: dict[str, Any]) -> dict[str, Any] | None:
        """None where one more worker is not wanted."""
        spool = hello["spool"] or next(iter(self._elsewhere), None)
        if spool not in self._free:
            return None
        index = self._free.pop(spool)
        if not hello["spool"]:
            self._elsewhere.remove(spool)
        lines = shard(self._path, index, self.count)
        self._workers[who] = _Worker(lines, self.spools[index])
        return {"same_clock": hello["clock"] == clock_name()}

    def _all_asked(self, what: str, gathered: dict[str, Any]) -> None:
        start_ns = None
        if what == "users":
            self._runner.start(self.plan.in_flight, spawn_rate=self.plan.in_flight)
        else:
            if sum(gathered.values()) != self.plan.in_flight:
                self.fault = f"Locust spawned {gathered} users, {self.plan.in_flight} were wanted"
            start_ns = time.monotonic_ns() + SOON_NS
        for who in gathered:
            self._answer(who, start_ns)


def _on_our_clock(spool: Path, part: dict[str, Any]) -> dict[str, Any]:
    first, last = (Offset(*offset) for offset in part["offsets"])
    clock = MasterClock(first, last)
    if first.uncertainty_ns:
        move_spool(spool, clock)
    moments = {name: clock.at(part[name]) for name in ("started_ns", "measured_ns", "ended_ns")}
    return part | moments | {"lags_ns": array("q", part["lags"]), "clock": clock.summary()}
