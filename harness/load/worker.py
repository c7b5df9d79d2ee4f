"""One load process of several: a Locust worker that runs its share of a plan for a master.

Everything beside Locust's own messages is a question of the worker that the master answers: am I
wanted, the next piece of my share, what time is it, are all users there, when does this phase
start, take this piece of my spool. One is in flight at a time, so no queue grows on either side.
"""

import tempfile
import time
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from gevent.event import AsyncResult
from gevent.timeout import Timeout
from locust.env import Environment
from locust.runners import WorkerRunner

from harness.errors import HarnessError
from harness.load.offset import MasterClock, Offset, clock_name, offset_of
from harness.load.plan import read_settings, read_turns
from harness.load.user import Cell, new_environment, run_cell

PINGS = 200
PIECE_BYTES = 1 << 20
SILENCE_S = 15.0  # of the master, whose heartbeat comes every second


class NoMasterError(HarnessError):
    """Nobody answers at the address."""


class Master:
    """The master as its worker sees it."""

    def __init__(self, address: str, environment: Environment) -> None:
        host, _, port = address.rpartition(":")
        try:
            self.runner: WorkerRunner = environment.create_worker_runner(host, int(port))
        except (ConnectionError, ValueError) as fault:
            raise NoMasterError(f"no master answers at {address} (HOST:PORT)") from fault
        self._answer: AsyncResult = AsyncResult()
        self.runner.register_message("answer", self._hear)

    def _hear(self, environment: Environment, msg: Any) -> None:
        self._answer.set((time.monotonic_ns(), msg.data))

    def ask(self, what: str, data: Any = None) -> Any:
        """Raises HarnessError where the master has died. How long an answer takes is up to it."""
        return self._timed(what, data)[1]

    def _timed(self, what: str, data: Any = None) -> tuple[int, Any]:
        self._answer = AsyncResult()
        self.runner.send_message("ask", {"what": what, "data": data})
        while True:
            with Timeout(1.0, False):
                answer: tuple[int, Any] = self._answer.get()
                return answer
            heard_s = self.runner.last_heartbeat_timestamp or time.time()
            if time.time() - heard_s > SILENCE_S:
                raise HarnessError(f"nothing heard from the master for {SILENCE_S:.0f} s")

    def offset(self) -> Offset:
        """Its clock against this one's."""
        trips = []
        for _ in range(PINGS):
            sent_ns = time.monotonic_ns()
            back_ns, seen_ns = self._timed("ping")
            trips.append((sent_ns, seen_ns, back_ns))
        return offset_of(trips)


def work(address: str, spool: Path | None) -> None:
    """Serves one cell. spool: where to leave the recording; None: the master is sent it.

    Raises HarnessError where there is none to serve or it failed, having told the master why.
    """
    environment = new_environment()
    master = Master(address, environment)
    hello = {"clock": clock_name(), "spool": str(spool) if spool else None}
    if (welcome := master.ask("hello", hello)) is None:
        raise HarnessError(f"the master at {address} has all the workers that it waits for")
    with tempfile.TemporaryDirectory(prefix="token-by-token-") as folder:
        try:
            part = _serve(master, environment, Path(folder), spool, welcome["same_clock"])
        except (HarnessError, OSError) as fault:
            master.ask("fault", str(fault))
            raise
    master.ask("done", part)


def _serve(
    master: Master, environment: Environment, folder: Path, spool: Path | None, same_clock: bool
) -> dict[str, Any]:
    plan_path, spool_path = folder / "plan.jsonl", spool or folder / "spool"
    with open(plan_path, "w", encoding="utf-8") as file:
        while piece := master.ask("plan"):
            file.write(piece)
    first = Offset(0, 0, 0) if same_clock else master.offset()
    clock = MasterClock(first, first)

    def start(cell: Cell) -> None:
        cell.at_barrier = lambda phase: phase.open(clock.back(master.ask("open", cell.slots)))
        master.ask("users")
        cell.expect(master.runner.user_count)

    plan = replace(read_settings(plan_path), spool_path=str(spool_path))
    part = run_cell(plan, read_turns(plan_path), environment, start)
    last = first if same_clock else master.offset()
    if spool is None:
        with open(spool_path, "rb") as recorded:
            while data := recorded.read(PIECE_BYTES):
                master.ask("spool", data)
    lags = part.pop("lags_ns").tobytes()
    return part | {"lags": lags, "offsets": [astuple(first), astuple(last)]}
