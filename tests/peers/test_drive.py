"""Running a tool: the preloaded fork, the CPU time of a window, and the emulator's truth."""

import json
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from harness.engines.emulator_stream import _prompt
from harness.peers import drive
from harness.peers.drive import Runner, Watch
from harness.peers.tools import TOOLS, Load


def test_cpu_time_between_two_moments_is_interpolated() -> None:
    watch = Watch(0, times_ns=[0, 100, 200], cpu_s=[1.0, 2.0, 4.0])
    assert watch.between(50, 150) == 1.5  # from 1.5 to 3.0


def test_a_preloaded_module_runs_anew_for_each_command(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text(
        "import os, sys\n"
        "if __name__ == '__main__':\n"
        "    print(sys.argv[1:], os.environ['SAID'], os.getcwd())\n"
        "    sys.exit(len(sys.argv))\n"
    )
    argv = [sys.executable, str(Path(drive.__file__).with_name("preload.py")), "tool", "json"]
    order = {"argv": ["a", "b"], "env": {"SAID": "yes"}, "log": f"{tmp_path}/log"}
    order["folder"] = str(tmp_path)
    ran = subprocess.run(
        argv,
        input=2 * (json.dumps(order) + "\n{}\n"),
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path)},
        timeout=20,
    )
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert answers[0] == {"ready": True}
    assert [set(answer) for answer in answers[1:]] == 2 * [{"pid"}, {"ended"}, {"status"}]
    assert answers[3] == answers[6] == {"status": 3}
    assert (tmp_path / "log").read_text() == f"['a', 'b'] yes {tmp_path}\n"


@pytest.mark.parametrize("environment", ["", "fake"])
def test_the_cpu_time_of_a_tool_that_exits_at_once_is_whole(
    environment: str, tmp_path: Path
) -> None:
    python = tmp_path / ".engines" / "fake" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    tool = replace(
        TOOLS[0],
        environment=environment,
        module="timeit",
        imports=("time",),
        argv=lambda _: ["-n", "1", "-r", "1", busy],
    )
    runner = Runner(tool, tmp_path)
    try:
        run = runner.run(Load("", tmp_path, tmp_path, 1, 1))
    finally:
        runner.close()
    assert run.status == 0
    assert run.watch.cpu_s[-1] >= 0.27  # the kernel counts in steps of 10 ms


def test_the_emulator_keeps_the_truth_of_each_request_once() -> None:
    body = json.dumps({"prompt": "a b", "max_tokens": 3, "stream": True}).encode()
    with drive.emulator("--ttft-ms", "20", "--gap-ms", "5") as url:
        asked = urllib.request.Request(
            f"{url}/v1/completions", data=body, headers={"X-Request-ID": "mine"}
        )
        before_ns = time.monotonic_ns()
        answer = urllib.request.urlopen(asked, timeout=10).read().decode()
        (truth,) = drive.take_truth(url)
        assert drive.take_truth(url) == []
    assert answer.startswith("data: ") and '" e1"' in answer
    written = [int(each.split("}")[0]) for each in answer.split('"emulator_ns":')[1:]]
    assert (truth.number, truth.request_id, truth.write_ns) == (1, "mine", written)
    assert before_ns < truth.received_ns < written[0] < written[1] < written[2]


def test_the_emulator_reads_a_chat_message_in_parts() -> None:
    parts = [{"type": "text", "text": "a b"}, {"type": "text", "text": "c"}]
    assert _prompt({"messages": [{"role": "user", "content": parts}]}) == ["a", "b", "c"]
