"""When a tool has noticed a fault, on reports made by hand."""

import contextlib
from pathlib import Path
from typing import Any

import pytest

from harness.peers import faults
from harness.peers.drive import Run, Watch
from harness.peers.faults import CHUNKS, FAULTS, REQUESTS, Fault
from harness.peers.outputs import Report, Seen
from harness.peers.tools import TOOLS, Load
from harness.peers.truth import Truth

HALF = REQUESTS // 2


def fault(name: str) -> Fault:
    return next(each for each in FAULTS if each.name == name)


def test_a_worthless_answer_is_noticed_where_just_those_requests_failed() -> None:
    good, bad = Seen("1", True), Seen("", False)
    judge = fault("empty").judge
    assert judge(Report([good] * HALF + [bad] * HALF, None), []) == (True, "4 of 8 failed")
    assert judge(Report([good] * REQUESTS, None), []) == (False, "0 of 8 failed")
    assert judge(Report([good] * HALF, None), []) == (True, "4 of 8 failed")  # successes alone


def test_a_short_answer_is_noticed_by_failure_or_by_the_right_count() -> None:
    whole, short = Seen("1", True, output_tokens=CHUNKS), Seen("2", True, output_tokens=CHUNKS // 2)
    judge = fault("short").judge
    assert judge(Report([whole, short] * HALF, None), [])[0]
    assert judge(Report([whole, Seen("2", False)] * HALF, None), [])[0]
    assert not judge(Report([whole] * REQUESTS, None), [])[0]  # the count that was asked for


def test_the_first_token_is_not_the_first_chunk() -> None:
    served = [Truth(each, 0, "", [300_000_000]) for each in range(1, REQUESTS + 1)]
    judge = fault("role_delay").judge
    right = [Seen(str(each.number), True, 301_000_000) for each in served]
    wrong = [Seen(str(each.number), True, 1_000_000) for each in served]
    assert judge(Report(right, None), served) == (True, "TTFT off by up to 1 ms")
    assert judge(Report(wrong, None), served) == (False, "TTFT off by up to 299 ms")


def test_the_time_between_tokens_is_not_that_between_chunks() -> None:
    judge = fault("several_tokens").judge
    assert judge(Report([], 2.41), [])[0]  # 190 ms, 79 gaps between 80 tokens
    assert not judge(Report([], 10.0), [])[0]
    assert judge(Report([], None), []) == (False, "no time between tokens")


class Crash:
    """A runner whose tool is killed and leaves half a file."""

    tool = TOOLS[1]
    cores: Any = None

    def run(self, load: Load, cores: Any) -> Run:
        self.cores = cores
        (load.folder / "result.json").write_text('{"errors": [')
        return Run(-9, 0.0, Watch(0))


@pytest.mark.parametrize(("name", "cores"), [("empty", (0, 1)), ("role_delay", (1,))])
def test_a_crash_is_no_notice(
    name: str, cores: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "emulator", lambda *_: contextlib.nullcontext("http://none"))
    crash: Any = Crash()
    noticed, said = faults.probe(crash, fault(name), Path())
    assert not noticed
    assert said.startswith("exit status -9; vllm bench serve: result.json can't be read")
    assert crash.cores == cores  # where a time is judged, those of a measured run


def test_faults_that_are_judged_by_a_time_are_told_apart() -> None:
    assert {each.name for each in FAULTS if each.is_timed} == {"role_delay", "several_tokens"}
