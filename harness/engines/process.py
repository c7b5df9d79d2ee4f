"""An engine process from start to stop: pinned, watched, and with nothing left behind.

The engine and its children are one process group. It is killed with the harness (PR_SET_PDEATHSIG
for its first process, which vLLM's and SGLang's children watch in turn); what survives even so is
ended before the next start, by a note under .engines/run/.
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

import psutil

from harness.engines.base import Engine, Launch
from harness.engines.ports import require_free
from harness.engines.redact import redact
from harness.errors import HarnessError

READY_TIMEOUT_S = 600.0  # a cold start of SGLang took 83 s on one core; a large model takes minutes
STOP_STEPS = ((signal.SIGINT, 15.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))
TAIL_LINES = 15
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # straight to the engine


def die_with_parent() -> None:
    """For preexec_fn: the kernel kills this process when the thread that started it ends.

    It also heeds SIGINT again, which a shell makes its background jobs ignore.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class RunningEngine:
    """One start of an engine. Call start() from the main thread: see die_with_parent.

    on_line gets (monotonic ns, line) of every line the engine writes, from a thread of its own.
    cores: CPUs that all of its processes are pinned to; empty: not pinned.
    """

    def __init__(
        self,
        engine: Engine,
        launch: Launch,
        cores: tuple[int, ...],
        on_line: Callable[[int, str], None],
        root: Path,
    ) -> None:
        self.base_url = f"http://127.0.0.1:{launch.port}"
        self._engine, self._launch, self._cores, self._on_line = engine, launch, cores, on_line
        self._notes = root / ".engines" / "run"
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        """Raises HarnessError if its port is taken or its program is missing."""
        end_leftovers(self._notes)
        require_free(self._launch.port, self._engine.name)
        free = os.sched_getaffinity(0)
        try:
            # Inherited through exec by every process and thread of the engine. One that is not
            # pinned must not inherit the core that the harness keeps to: it gets them all.
            os.sched_setaffinity(0, self._cores or range(os.cpu_count() or 1))
            self._process = subprocess.Popen(
                self._launch.argv,
                env=os.environ | dict(self._launch.env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        except OSError as error:
            raise HarnessError(
                f"{self._engine.name}: can't be started: {self._launch.argv[0]}: {error.strerror}, "
                f"cores {list(self._cores)}"
            ) from None
        finally:
            os.sched_setaffinity(0, free)
        self._write_note()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Returns when the engine says it is healthy; raises HarnessError if it dies or is late."""
        deadline = time.monotonic() + timeout_s
        url = self.base_url + self._engine.health_path
        while time.monotonic() < deadline:
            if not self.alive():
                raise HarnessError(f"{self._engine.name}: died while starting, {self.exit_note()}")
            if _answers(url):
                return
            time.sleep(0.1)
        raise HarnessError(
            f"{self._engine.name}: not ready after {timeout_s:.0f} s; its last lines:\n"
            + "\n".join(self._tail)
        )

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def exit_note(self) -> str:
        """How the engine ended, with its last lines."""
        if self._reader is not None:
            self._reader.join(timeout=2.0)
        code = self._process.poll() if self._process else None
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return f"{how}; its last lines:\n" + "\n".join(self._tail)

    def pids(self) -> list[int]:
        """Every process of the engine that runs now."""
        return [] if self._process is None else group_pids(self._process.pid)

    def stop(self) -> None:
        """Ends every process of the engine, gently first. Returns when none is left.

        Call it from the main thread, which alone may set signal handlers.
        """
        if self._process is None:
            return
        interrupts: list[int] = []  # Ctrl-C must not cut this off: it is heeded at the end
        heeded = signal.signal(signal.SIGINT, lambda sign, _: interrupts.append(sign))
        try:
            for sign, patience_s in STOP_STEPS:
                if _signal_group(self._process.pid, sign, patience_s, self._process):
                    break
            self._process.wait()
        finally:
            signal.signal(signal.SIGINT, heeded)
        if self._reader is not None:
            self._reader.join(timeout=2.0)
        self._note_path().unlink(missing_ok=True)
        if interrupts:
            raise KeyboardInterrupt

    def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        for raw in self._process.stdout:
            t_ns = time.monotonic_ns()
            # A progress bar rewrites its line: what counts is what stood there last.
            line = raw.decode(errors="replace").rstrip("\r\n").rpartition("\r")[2]
            self._tail.append(redact(line))
            self._on_line(t_ns, line)

    def _note_path(self) -> Path:
        assert self._process is not None
        return self._notes / f"{self._process.pid}.json"

    def _write_note(self) -> None:
        assert self._process is not None
        self._notes.mkdir(parents=True, exist_ok=True)
        try:
            started_s = psutil.Process(self._process.pid).create_time()
        except psutil.NoSuchProcess:
            return
        note = {
            "started_s": started_s,
            "boot_s": psutil.boot_time(),
            "harness": os.getpid(),
            "harness_started_s": psutil.Process().create_time(),
        }
        self._note_path().write_text(json.dumps(note))


def group_pids(group: int) -> list[int]:
    """Processes of a process group, without those that ended and wait to be reaped."""
    found = []
    for pid in psutil.pids():
        try:
            if os.getpgid(pid) == group and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except (ProcessLookupError, PermissionError, psutil.Error):
            continue
    return found


def end_leftovers(notes: Path) -> None:
    """Ends engines whose harness was killed. A process that took over a number is left alone.

    The kernel gives a number to no new process while a group of that number lives, so a group
    without its first process is the one that was noted, unless the machine was booted since.
    """
    for path in notes.glob("*.json"):
        group = int(path.stem)
        try:
            note = json.loads(path.read_text())
            if _is_process(note["harness"], note["harness_started_s"]):
                continue  # that harness is at work
            same_boot = abs(note["boot_s"] - psutil.boot_time()) < 60
            if same_boot and (
                not psutil.pid_exists(group) or _is_process(group, note["started_s"])
            ):
                _signal_group(group, signal.SIGKILL, 5.0)
        except (ValueError, KeyError):
            pass  # torn by the kill: the engine died with its harness
        path.unlink(missing_ok=True)


def _is_process(pid: int, started_s: float) -> bool:
    """Whether the process that had this number then has it now."""
    try:
        return abs(psutil.Process(pid).create_time() - started_s) < 0.1
    except psutil.Error:
        return False


def _signal_group(
    group: int, sign: int, patience_s: float, leader: subprocess.Popen[bytes] | None = None
) -> bool:
    """Signals a group and waits. True when none of it is left."""
    deadline = time.monotonic() + patience_s
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, sign)
    while time.monotonic() < deadline:
        if leader is not None:
            leader.poll()  # reaps it
        if not group_pids(group):
            return True
        time.sleep(0.05)
    return False


def _answers(url: str) -> bool:
    try:
        with _OPENER.open(url, timeout=5.0) as answer:
            return bool(answer.status == 200)
    except (OSError, HTTPException):
        return False
