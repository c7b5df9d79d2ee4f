"""Two engines, five repeats, twelve prompts: every expected value can be computed by eye.

TTFT of prompt p (1 to 12) in repeat r is p + 10 ms times the factor of its engine in that repeat;
TPOT is 10 ms on fast and 20 ms on slow. Every request gives 4 tokens, a measured phase lasts 2 s.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.recording.store import Recording
from tests.recording.conftest import MS, cell, create, request

FACTORS = {"fast": (1, 1, 1, 1, 1), "slow": (2, 3, 4, 5, 6)}
PROMPTS = range(1, 13)


def cells() -> list[dict[str, Any]]:
    """Cell 1 to 5 are fast's repeats, 6 to 10 slow's."""
    return [
        cell(number + 5 * run, run_id=run + 1, engine=engine, variant=engine, repeat=number)
        for run, engine in enumerate(FACTORS)
        for number in range(1, 6)
    ]


def requests(cell_id: int, engine: str, repeat: int) -> list[dict[str, Any]]:
    factor = FACTORS[engine][repeat - 1]
    gap_ms = 10 if engine == "fast" else 20
    rows = []
    for prompt in PROMPTS:
        first = 110 * MS + (prompt + 10) * factor * MS
        times = {"first_token_ns": first, "first_answer_ns": first}
        times["last_token_ns"] = times["ended_ns"] = first + 3 * gap_ms * MS
        chunks = {"chunk_gap_us": [gap_ms * 1000] * 3, "chunk_tokens": [1] * 4}
        shared = {"chunk_shared": [False] * 4}
        rows.append(request(cell_id, prompt, **times, **chunks, **shared))
    return rows


def fill(recording: Recording) -> None:
    runs = [
        {"run_id": run, "session_id": 1, "engine": engine, "variant": engine, "model_id": "m"}
        | {"argv": [], "env": {}, "started_ns": 0, "stopped_ns": 20_000 * MS}
        for run, engine in enumerate(FACTORS, 1)
    ]
    with recording.transaction():
        recording.insert("model", [{"model_id": "m", "source": "made", "weights_sha256": "0" * 64}])
        recording.insert("engine_run", runs)
        recording.insert("cell", cells())
        for row in cells():
            made = requests(row["cell_id"], row["engine"], row["repeat"])
            recording.insert("request", made)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recording = create(tmp_path_factory.mktemp("template") / "made.partial.duckdb")
    fill(recording)
    recording.close()
    return recording.path


@pytest.fixture
def made(template: Path, tmp_path: Path) -> Iterator[Recording]:
    recording = Recording(Path(shutil.copy(template, tmp_path)))
    yield recording
    recording.close()
