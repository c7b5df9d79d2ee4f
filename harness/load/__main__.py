"""The load process. Its last line is one JSON object: the summary of the cell.

    python -m harness.load PLAN                   the whole plan in this process
    python -m harness.load PLAN --processes 2     a Locust master, which starts two Locust workers
    python -m harness.load PLAN --listen 10.0.0.1:5557 --remote 1        and waits for one elsewhere
    python -m harness.load --worker 10.0.0.1:5557       on another machine: serves cell after cell

A process of its own, because Locust makes the whole standard library cooperative when imported,
and because it is pinned to the client's core.
"""

import argparse
import json
import os
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path

from harness.load.user import run_alone  # first: imports Locust before the standard library is used

from harness.errors import HarnessError  # isort: skip
from harness.load.lead import lead  # isort: skip
from harness.load.plan import read_settings  # isort: skip
from harness.load.summary import merge  # isort: skip
from harness.load.worker import NoMasterError, work  # isort: skip


def _take_core(core: int) -> None:
    """Pins the process and, where permitted, lets no other process take its core: a client that
    waits for its core for one gap finds two chunks in one read, and knows only the last one's time
    (4.8 % of chunks on a busy machine without it, 0.4 % with it)."""
    os.sched_setaffinity(0, {core})
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m harness.load")
    parser.add_argument("plan", type=Path, nargs="?")
    parser.add_argument("--processes", type=int, default=1, help="load processes on this machine")
    parser.add_argument("--listen", default="127.0.0.1:0", metavar="HOST:PORT")
    parser.add_argument("--remote", type=int, default=0, help="workers to wait for elsewhere")
    parser.add_argument("--worker", metavar="HOST:PORT", help="join a master")
    parser.add_argument("--core", type=int, help="of a worker")
    parser.add_argument("--spool", type=Path, help="of a worker on the master's machine")
    asked = parser.parse_args(argv)
    if (asked.plan is None) == (asked.worker is None):
        parser.error("give a plan or --worker")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a slot takes two
    try:
        if asked.worker:
            return _serve(asked.worker, asked.core, asked.spool)
        plan = read_settings(asked.plan)
        if asked.processes == 1 and not asked.remote:
            if plan.cores:
                _take_core(plan.cores[0])
            parts = [run_alone(asked.plan)]
        else:
            parts = lead(asked.plan, asked.processes, asked.listen, asked.remote)
        print(json.dumps(merge(plan, parts)), flush=True)
    except (OSError, HarnessError) as fault:
        print(f"the load process stopped: {fault}", file=sys.stderr)
        return 1
    return 0


def _serve(address: str, core: int | None, spool: Path | None) -> int:
    """Serves one cell, and where it is a worker on another machine the next one too, in a new
    process, until there has been no master for minutes."""
    if core is not None:
        _take_core(core)
    try:
        work(address, spool)
    except NoMasterError:
        raise
    except (OSError, HarnessError) as fault:
        if spool:
            raise
        print(f"this cell failed: {fault}", file=sys.stderr, flush=True)
    if spool is None:
        time.sleep(1.0)
        os.execv(sys.executable, [sys.executable, "-m", "harness.load", *sys.argv[1:]])
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    # Locust's greenlets may keep a finished process alive: nothing is left to be waited for.
    os._exit(status)
