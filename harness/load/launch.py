"""Runs a plan in load processes of their own, and gives back what they recorded."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.engines.process import die_with_parent
from harness.errors import HarnessError
from harness.load.plan import LoadPlan, PlannedRequest, save_plan

PACKAGE_ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Remote:
    """Load machines beside this one: `python -m harness.load --worker HOST:PORT` on each.

    listen: the address of this machine that they join at; workers: how many to wait for. It takes
    anybody who knows the address: for a trusted network.
    """

    listen: str
    workers: int


@dataclass(frozen=True, slots=True)
class LoadResult:
    """summary: see summary.merge. spools: one a process, each with its own clock anchors; all times
    are on this machine's monotonic clock."""

    summary: dict[str, Any]
    spools: tuple[Path, ...]


def run(
    plan: LoadPlan,
    requests: Iterable[PlannedRequest],
    processes: int,
    folder: Path,
    alive: Callable[[], bool] = lambda: True,
    remote: Remote | None = None,
) -> LoadResult:
    """Writes the plan into folder, runs it, and waits for its end.

    Raises HarnessError where a load process failed, or alive() (the engine) became false.
    """
    workers = processes + (remote.workers if remote else 0)
    if not 1 <= workers <= plan.in_flight:
        raise HarnessError(
            f"{workers} load processes for {plan.in_flight} connections: each needs at least one"
        )
    path = folder / "plan.jsonl"
    save_plan(path, plan, requests)
    argv = [sys.executable, "-m", "harness.load", str(path), "--processes", str(processes)]
    if remote:
        argv += ["--listen", remote.listen, "--remote", str(remote.workers)]
        join = f"python -m harness.load --worker {remote.listen}"
        print(f"waiting for {remote.workers} load machines to run: {join}", file=sys.stderr)
    said = _wait(argv, alive)
    return LoadResult(json.loads(said.splitlines()[-1]), plan.spools(workers))


def _wait(argv: list[str], alive: Callable[[], bool]) -> str:
    process = subprocess.Popen(
        argv,
        cwd=PACKAGE_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
    )
    try:
        while True:
            try:
                out, err = process.communicate(timeout=1.0)
                break
            except subprocess.TimeoutExpired:
                if not alive():
                    break
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if not alive():
        raise HarnessError("the engine died while it was loaded")
    if process.returncode != 0:
        raise HarnessError(
            f"the load process failed (exit {process.returncode}): {err.strip()[-800:]}"
        )
    return out
