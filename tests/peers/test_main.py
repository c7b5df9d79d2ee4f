"""The benchmark's command, with fakes in place of tools and emulator."""

import argparse
import contextlib
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pytest

from harness.errors import HarnessError
from harness.peers import __main__ as bench
from harness.peers.drive import Run, Watch
from harness.peers.store import Store
from harness.peers.tools import TOOLS, Load, Tool
from harness.peers.truth import Truth

RECORDER, VLLM, SGLANG = TOOLS[:3]


class FakeRunner:
    """Its tool writes what it is told to and exits with a status."""

    closed = 0

    def __init__(self, tool: Tool, _: Path, wrote: str = "{", status: int = 1) -> None:
        self.tool, self.wrote, self.status = tool, wrote, status

    def ready(self) -> None:
        if self.tool is SGLANG:
            raise HarnessError("its environment can't run sglang.bench_serving")

    def run(self, load: Load) -> Run:
        (load.folder / "result.json").write_text(self.wrote)
        return Run(self.status, 1.5, Watch(0, [0, 10**9], [0.0, 1.0]))

    def close(self) -> None:
        FakeRunner.closed += 1


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "a.duckdb", "cpu")


def found(store: Store, sql: str) -> list[tuple[Any, ...]]:
    store.close()
    with duckdb.connect(str(store.path), read_only=True) as db:
        return db.execute(sql).fetchall()


def test_a_tool_that_cannot_be_installed_or_started_is_kept_with_its_reason(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ensure(tool: Tool, root: Path) -> None:
        if tool is VLLM:
            raise HarnessError(f"no compiler; log: {root}/.engines/vllm-cpu.log")

    monkeypatch.setattr(bench, "ensure", ensure)
    monkeypatch.setattr(bench, "Runner", FakeRunner)
    monkeypatch.setattr(bench, "version", lambda *_: "1.0")
    monkeypatch.setattr(FakeRunner, "closed", 0)
    with ExitStack() as open_runners:
        runners = bench._prepare([TOOLS[4], VLLM, SGLANG, RECORDER], store, open_runners)
    assert [runner.tool.name for runner in runners] == ["AIPerf", "Token By Token"]
    assert FakeRunner.closed == 3  # the one that could not start too
    assert found(store, "SELECT tool, place, install_error FROM tool ORDER BY place") == [
        ("Token By Token", 0, None),
        ("vllm bench serve", 1, "no compiler; log: .engines/vllm-cpu.log"),
        ("sglang.bench_serving", 2, "its environment can't run sglang.bench_serving"),
        ("AIPerf", 4, None),  # its own place, whoever else runs
    ]


def one(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch, rate: int = 100, **runner: Any
) -> bool:
    served = [Truth(1, 0, "", [10_000_000, 30_000_000]), Truth(2, 0, "", [12_000_000, 32_000_000])]
    monkeypatch.setattr(bench, "take_truth", lambda _: served)
    fake: Any = FakeRunner(VLLM, folder, **runner)
    return bench._one(1, 1, rate, fake, Load("http://none", folder, folder, 2, 2), store)


def test_an_output_that_cannot_be_read_is_the_fault_of_its_run(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not one(store, tmp_path, monkeypatch)  # it may be tried again
    ((fault, status, matched),) = found(store, "SELECT fault, status, matched FROM bench_run")
    assert fault.startswith("vllm bench serve: result.json can't be read: JSONDecodeError")
    assert (status, matched) == (1, 0)


REPORT = (
    '{"generated_texts": [" e1 token", " e2 token"], "errors": ["", ""], "ttfts": [0.01, 0.012],'
    ' "itls": [[0.02], [%s]], "output_lens": [2, 2], "mean_itl_ms": 20}'
)


@pytest.mark.parametrize(
    ("last_gap_s", "status", "rate", "hopeless"),
    [
        ("0.02", 0, 100, False),
        ("0.09", 0, 100, True),  # 70 ms off
        ("0.02", -9, 100, True),
        ("0.02", 0, 1000, True),  # four chunks came in 22 ms
    ],
)
def test_a_rate_is_hopeless_where_a_tool_is_far_off_slow_or_ended(
    last_gap_s: str,
    status: int,
    rate: int,
    hopeless: bool,
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrote = REPORT % last_gap_s
    assert one(store, tmp_path, monkeypatch, rate, wrote=wrote, status=status) is hopeless
    columns = "fault, matched, chunks, gaps, gaps_compared"
    assert found(store, f"SELECT {columns} FROM bench_run") == [(None, 2, 4, 2, 2)]


def test_no_rate_above_a_hopeless_one_is_tried(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []

    def run_one(_: int, repeat: int, rate: int, *rest: Any) -> bool:
        ran.append((repeat, rate))
        return rate == 5000

    monkeypatch.setattr(bench, "_one", run_one)
    monkeypatch.setattr(bench, "emulator", lambda *_: contextlib.nullcontext("http://none"))
    options = argparse.Namespace(repeats=2, rates=[1000, 5000, 9000], seconds=1.0)
    fake: Any = FakeRunner(VLLM, tmp_path)
    bench._measure([fake], store, tmp_path, options)
    assert ran == [(1, 1000), (1, 5000), (2, 1000)]
    assert found(store, "FROM untried") == [("vllm bench serve", 9000, 5000)]


@pytest.mark.parametrize("words", [["--tools", "AIPerf"], ["--no-faults"]])
def test_a_part_of_a_run_is_not_for_the_site(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["peers", *words])
    with pytest.raises(SystemExit):
        bench._options()
    assert "the site shows full runs alone" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["peers", *words, "--write", "a.duckdb", "--rates", "9", "5"])
    options = bench._options()
    assert options.places == ([4] if "AIPerf" in words else [0, 1, 2, 3, 4, 5])
    assert options.rates == [5, 9]
