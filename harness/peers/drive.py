"""One run of one tool against the emulator: started, watched, ended.

The emulator has core 0, the tool and all that it starts core 1. A tool's CPU time is that of its
whole process tree between the first request's arrival and the end of the last answer as the tool
saw it; reading its output in and its own report are not in it. A tool may exit right after its last
answer, so the last look is taken when it has ended and before it is reaped.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import psutil

from harness.engines.ports import free_port
from harness.errors import HarnessError
from harness.peers.tools import CLIENT_CORE, Load, Tool
from harness.peers.truth import Truth

SERVER_CORE = 0
BOTH_CORES = (SERVER_CORE, CLIENT_CORE)  # of a tool of which nothing is timed
RUN_TIMEOUT_S = 120
WATCH_EVERY_S = 0.2
# Process id; what waits until it has ended; what reaps it and gives its exit status.
Started = tuple[int, Callable[[], object], Callable[[], int]]


@contextlib.contextmanager
def emulator(*options: str) -> Iterator[str]:
    """An emulator on its core, for as long as the block lasts; gives its URL."""
    port = free_port()
    argv = [sys.executable, "-m", "harness.engines.emulator", "--port", str(port)]
    process = subprocess.Popen([*argv, "--keep-truth", "1", *options], stdout=subprocess.DEVNULL)
    try:
        psutil.Process(process.pid).cpu_affinity([SERVER_CORE])
        url = f"http://127.0.0.1:{port}"
        for _ in range(100):
            with contextlib.suppress(urllib.error.URLError):
                urllib.request.urlopen(f"{url}/health", timeout=1)
                break
            if process.poll() is not None:
                raise HarnessError("the emulator could not start")
            time.sleep(0.1)
        else:
            raise HarnessError("the emulator did not answer within 10 s")
        yield url
    finally:
        process.kill()
        process.wait()


def take_truth(url: str) -> list[Truth]:
    """What the emulator served since it was last asked."""
    with urllib.request.urlopen(f"{url}/truth", timeout=30) as answer:
        return [Truth(**each) for each in json.load(answer)]


@dataclass(slots=True)
class Watch:
    """CPU time of a process tree over time. A process that ended keeps its last value."""

    pid: int
    times_ns: list[int] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    _each: dict[int, float] = field(default_factory=dict)

    def look(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(self.pid)
            for process in (root, *root.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    used = process.cpu_times()
                    self._each[process.pid] = used.user + used.system
        self.times_ns.append(time.monotonic_ns())
        self.cpu_s.append(sum(self._each.values()))

    def until(self, over: threading.Event) -> None:
        while not over.wait(WATCH_EVERY_S):
            self.look()

    def between(self, start_ns: int, end_ns: int) -> float:
        """CPU seconds from start to end, interpolated between looks."""
        start_s, end_s = np.interp([start_ns, end_ns], self.times_ns, self.cpu_s)
        return float(end_s - start_s)


@dataclass(frozen=True, slots=True)
class Run:
    """How a run went. status: the tool's exit status; negative: ended by that signal."""

    status: int
    wall_s: float
    watch: Watch


class Runner:
    """A tool ready to be run: preloaded in its environment, or the recorder itself."""

    def __init__(self, tool: Tool, root: Path) -> None:
        self.tool = tool
        self._is_ready = False
        self._server: subprocess.Popen[str] | None = None
        if tool.environment:
            self._server = self._preload(root / ".engines" / tool.environment)

    def _preload(self, home: Path) -> subprocess.Popen[str]:
        if not home.exists():
            raise HarnessError(f"{self.tool.name} is not installed: {home.name} is missing")
        argv = [str(home / "bin" / "python"), str(Path(__file__).with_name("preload.py"))]
        env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        env |= dict(self.tool.env)
        if (home / "stub").exists():
            env["LD_LIBRARY_PATH"] = str(home / "stub")
        server = subprocess.Popen(
            [*argv, self.tool.module, *self.tool.imports],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )
        psutil.Process(server.pid).cpu_affinity([CLIENT_CORE])
        return server

    def run(self, load: Load, cores: Sequence[int] = (CLIENT_CORE,)) -> Run:
        """Runs the tool on the load; its output is in the load's folder, its log in log.txt.

        cores: of a preloaded tool; the recorder takes its own.
        """
        if self._server:
            psutil.Process(self._server.pid).cpu_affinity(list(cores))  # the fork inherits them
        argv = self.tool.argv(load)
        before_s = time.monotonic()
        pid, ended, reap = self._fork(argv, load) if self._server else self._spawn(argv, load)
        over, watch = threading.Event(), Watch(pid)
        watcher = threading.Thread(target=watch.until, args=(over,))
        watcher.start()
        killer = threading.Timer(RUN_TIMEOUT_S, _kill, (pid,))
        killer.start()
        try:
            ended()
        finally:
            killer.cancel()
            over.set()
            watcher.join()
        watch.look()
        return Run(reap(), time.monotonic() - before_s, watch)

    def _spawn(self, argv: Sequence[str], load: Load) -> Started:
        with open(load.folder / "log.txt", "w") as log:
            command = [sys.executable, "-m", self.tool.module, *argv]
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        ended = partial(os.waitid, os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return process.pid, ended, process.wait

    def _fork(self, argv: Sequence[str], load: Load) -> Started:
        folder = str(load.folder)
        order: dict[str, object] = {
            "argv": argv,
            "env": {},
            "log": f"{folder}/log.txt",
            "folder": folder,
        }
        self.ready()
        self._tell(order)
        return self._hear()["pid"], self._hear, self._reap

    def _reap(self) -> int:
        self._tell({})
        return self._hear()["status"]

    def ready(self) -> None:
        """Waits until the imports are done."""
        if self._server and not self._is_ready:
            self._hear()
            self._is_ready = True

    def _tell(self, order: dict[str, object]) -> None:
        assert self._server and self._server.stdin
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()

    def _hear(self) -> dict[str, int]:
        assert self._server and self._server.stdout
        line = self._server.stdout.readline()
        if not line:
            raise HarnessError(f"{self.tool.name}: its environment can't run {self.tool.module}")
        answer: dict[str, int] = json.loads(line)
        return answer

    def close(self) -> None:
        if self._server:
            self._server.kill()
            self._server.wait()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
