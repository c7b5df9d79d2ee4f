"""The master of several load processes: Locust's master runner and the workers on this machine."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gevent
from locust.exception import RPCError

from harness.engines.process import die_with_parent
from harness.errors import HarnessError
from harness.load.desk import Desk
from harness.load.plan import LoadPlan
from harness.load.user import new_environment

PATIENCE_S = 300.0  # for workers to join


def lead(path: Path, processes: int, listen: str, remote: int) -> list[dict[str, Any]]:
    """Runs the plan on `processes` workers of this machine and `remote` ones that join at `listen`;
    returns the parts of all. Raises HarnessError where one failed, died, or never came."""
    os.environ["LOCUST_WAIT_FOR_WORKERS_REPORT_AFTER_RAMP_UP"] = "60"  # Locust's own: 1 s
    host, _, port = listen.rpartition(":")
    try:
        runner = new_environment().create_master_runner(host, int(port))
    except (RPCError, ValueError, SystemExit) as fault:
        raise HarnessError(f"can't listen for load workers at {listen}: {fault}") from fault
    desk = Desk(path, runner, processes, remote)
    own = "127.0.0.1" if host in ("*", "0.0.0.0") else host
    children = [
        _start_worker(f"{own}:{runner.server.port}", desk.plan, index, desk.spools[index])
        for index in range(processes)
    ]
    started_s = time.monotonic()
    try:
        while not desk.complete:
            gevent.sleep(0.05)
            _raise_faults(desk, children, time.monotonic() - started_s)
        gevent.sleep(0.2)  # the last answers leave through a thread of ZeroMQ's
    finally:
        for child in children:
            child.kill()
    return desk.collect()


def _raise_faults(desk: Desk, children: list[subprocess.Popen[bytes]], waited_s: float) -> None:
    if desk.fault:
        raise HarnessError(desk.fault)
    if lost := desk.lost():
        raise HarnessError(f"load worker {', '.join(lost)}: its heartbeat stopped")
    if desk.missing and waited_s > PATIENCE_S:
        raise HarnessError(f"{desk.missing} load workers have not joined in {PATIENCE_S:.0f} s")
    for child in children:
        if child.poll():
            raise HarnessError(f"a load worker ended with status {child.returncode}")


def _start_worker(address: str, plan: LoadPlan, index: int, spool: Path) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "harness.load", "--worker", address, "--spool", str(spool)]
    if plan.cores:
        argv += ["--core", str(plan.cores[index % len(plan.cores)])]
    return subprocess.Popen(argv, preexec_fn=die_with_parent)
