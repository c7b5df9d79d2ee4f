"""The load process: `python -m harness.load PLAN.json`. The last line is one JSON object.

A process of its own, because Locust makes the whole standard library cooperative when imported,
and because it is pinned to the client's core.
"""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from harness.load.user import run_cell  # first: imports Locust before the standard library is used

from harness.load.plan import LoadPlan  # isort: skip


def _take_core(core: int) -> None:
    """Pins the process and, where permitted, lets no other process take its core: a client that
    waits for its core for one gap finds two chunks in one read, and knows only the last one's time
    (4.8 % of chunks on a busy machine without it, 0.4 % with it)."""
    os.sched_setaffinity(0, {core})
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print("usage: python -m harness.load PLAN.json", file=sys.stderr)
        return 2
    plan = LoadPlan.load(Path(argv[1]))
    if plan.core is not None:
        _take_core(plan.core)
    try:
        realtime = os.sched_getscheduler(0) == os.SCHED_FIFO
        print(json.dumps({**run_cell(plan), "realtime_priority": realtime}), flush=True)
    except OSError as fault:
        print(f"the load process stopped: {fault.strerror} ({plan.spool_path})", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    status = main(sys.argv)
    sys.stderr.flush()
    # Locust's greenlets may keep a finished process alive: nothing is left to be waited for.
    os._exit(status)
