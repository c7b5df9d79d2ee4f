"""Start, death, stop and leftovers, with engines of a few lines."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from harness.engines import process
from harness.engines.base import Launch
from harness.engines.ports import free_port, require_free
from harness.engines.process import RunningEngine, end_leftovers, group_pids
from harness.errors import HarnessError
from tests.engines import fake

Start = Callable[[str], RunningEngine]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Start]:
    running: list[RunningEngine] = []

    def make(script: str) -> RunningEngine:
        started = RunningEngine(
            fake.Fake(), fake.launch(script, free_port()), (0,), lambda t_ns, line: None, tmp_path
        )
        running.append(started)
        started.start()
        return started

    yield make
    for started in running:
        started.stop()


def until(condition: Callable[[], bool], patience_s: float = 10.0) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_ready_pinned_with_its_lines_and_stopped(tmp_path: Path) -> None:
    lines: list[tuple[int, str]] = []
    started = RunningEngine(
        fake.Fake(),
        fake.launch(fake.HEALTHY, free_port()),
        (0,),
        lambda t_ns, line: lines.append((t_ns, line)),
        tmp_path,
    )
    mine = os.sched_getaffinity(0)
    before_ns = time.monotonic_ns()
    started.start()
    started.wait_ready(10.0)
    assert os.sched_getaffinity(0) == mine
    (pid,) = started.pids()
    assert os.sched_getaffinity(pid) == {0}
    ((t_ns, line),) = lines
    assert line == "KV pool: 1,234 tokens"
    assert before_ns < t_ns < time.monotonic_ns()
    assert fake.Fake().kv_pool_tokens(line) == 1234
    assert started.alive()
    started.stop()
    assert not started.alive() and started.pids() == [] and not psutil.pid_exists(pid)
    assert list((tmp_path / ".engines" / "run").iterdir()) == []


def test_death_while_starting_names_the_code_and_the_last_lines_redacted(engine: Start) -> None:
    started = engine(fake.DIES_STARTING)
    with pytest.raises(HarnessError, match="fake: died while starting, exit code 7") as caught:
        started.wait_ready(10.0)
    assert "loading weights" in str(caught.value)
    assert "RuntimeError: api_key=[redacted]" in str(caught.value)


def test_death_in_mid_run_is_seen(engine: Start) -> None:
    started = engine(fake.HEALTHY)
    started.wait_ready(10.0)
    os.kill(started.pids()[0], signal.SIGKILL)
    until(lambda: not started.alive())
    assert started.exit_note().startswith("signal 9; its last lines:\nKV pool")


def test_not_ready_in_time(engine: Start) -> None:
    started = engine(fake.NEVER_READY)
    until(lambda: bool(started.pids()))
    with pytest.raises(HarnessError, match="fake: not ready after 1 s"):
        started.wait_ready(0.6)


def test_a_port_in_use_is_named_with_its_holder(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        started = RunningEngine(
            fake.Fake(), fake.launch(fake.HEALTHY, port), (), lambda t_ns, line: None, tmp_path
        )
        with pytest.raises(
            HarnessError, match=rf"port {port} is in use by .*\(pid {os.getpid()}\)"
        ):
            started.start()
        started.stop()
    require_free(port, "fake")


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    launch = Launch(("/nowhere/engine",), free_port())
    started = RunningEngine(fake.Fake(), launch, (), lambda t_ns, line: None, tmp_path)
    with pytest.raises(HarnessError, match="fake: can't be started: /nowhere/engine: No such file"):
        started.start()


def test_stop_leaves_no_child_even_if_it_ignores_signals(
    engine: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = ((signal.SIGINT, 0.3), (signal.SIGTERM, 0.3), (signal.SIGKILL, 5.0))
    monkeypatch.setattr(process, "STOP_STEPS", patience)
    started = engine(fake.STUBBORN)
    started.wait_ready(10.0)
    until(lambda: "child is up" in started.exit_note())
    pids = started.pids()
    assert len(pids) == 2
    started.stop()
    assert started.pids() == []


def test_an_interrupt_during_the_stop_is_heeded_after_it(
    engine: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = ((signal.SIGINT, 0.5), (signal.SIGTERM, 0.3), (signal.SIGKILL, 5.0))
    monkeypatch.setattr(process, "STOP_STEPS", patience)
    started = engine(fake.STUBBORN)
    started.wait_ready(10.0)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        started.stop()
    assert started.pids() == []


HARNESS = """
    import os, signal, sys
    from pathlib import Path
    from harness.engines.ports import free_port
    from harness.engines.process import RunningEngine
    from tests.engines import fake
    e = RunningEngine(fake.Fake(), fake.launch(fake.STUBBORN, free_port()), (), lambda t, l: None,
                      Path(sys.argv[1]))
    e.start(); e.wait_ready(10.0)
    while len(e.pids()) < 2 or "child is up" not in e._tail: pass
    print(*e.pids(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_harness_takes_its_engine_along_and_the_rest_ends_at_the_next_start(
    tmp_path: Path,
) -> None:
    argv = [sys.executable, "-c", textwrap.dedent(HARNESS), str(tmp_path)]
    killed = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    leader, child = sorted(int(pid) for pid in killed.stdout.split())
    until(lambda: leader not in group_pids(leader))  # PR_SET_PDEATHSIG
    assert group_pids(leader) == [child]
    end_leftovers(tmp_path / ".engines" / "run")
    assert group_pids(leader) == []
    assert list((tmp_path / ".engines" / "run").iterdir()) == []


@pytest.mark.parametrize("change", ["recycled", "other boot", "harness at work", "torn"])
def test_a_process_that_is_not_a_leftover_is_left_alone(tmp_path: Path, change: str) -> None:
    bystander = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
    )
    try:
        me = psutil.Process()
        note = {
            "started_s": psutil.Process(bystander.pid).create_time(),
            "boot_s": psutil.boot_time(),
            "harness": me.pid,
            "harness_started_s": me.create_time() - 500.0,
        }
        if change == "recycled":
            note["started_s"] -= 100.0
        elif change == "other boot":
            note["boot_s"] -= 5000.0
        elif change == "harness at work":
            note["harness_started_s"] = me.create_time()
        path = tmp_path / f"{bystander.pid}.json"
        path.write_text("{" if change == "torn" else json.dumps(note))
        end_leftovers(tmp_path)
        assert bystander.poll() is None
        assert path.exists() == (change == "harness at work")
    finally:
        bystander.kill()
        bystander.wait()
