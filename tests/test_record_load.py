"""What a recording keeps of its load: a trace's own times and lengths, the share of the client's
ceiling, and the levels that can't be reached."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cell import Target
from harness.engines import external
from harness.engines import get as get_engine
from harness.errors import HarnessError
from harness.experiment import Variant, load
from harness.load.ceiling import FOLDER
from harness.recording.store import connect
from harness.rounds import _worklist
from harness.schedule import Cell, cells
from harness.telemetry import machine
from tests.test_experiment import DECLARATION, write
from tests.test_record import FLAGS, finish, root_with

TRACE = [(0, 24, 4), (150, 40, 6), (400, 32, 3)]  # ms, prompt tokens, output tokens
CALIBRATION = {"processes": {"1": {"chunks_per_s": 100, "requests_per_s": 1_000}}}


@pytest.fixture(scope="module")
def calibration() -> dict[str, Any]:
    return {"machine": machine.describe()} | CALIBRATION


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory, calibration: dict[str, Any]) -> Path:
    """A trace, recorded on a machine whose client was calibrated."""
    root = root_with(tmp_path_factory.mktemp("root"))
    declaration = root / "episodes" / "77-test" / "experiment.toml"
    text = declaration.read_text()
    for old, new in {
        "[24, 48]": "[24]",
        "in_flight = 2": 'load = "trace"\ntrace = "t.jsonl"\nconnections = 4\ncold = false',
        "warmup_requests = 2": "warmup_requests = 1",
        "min_requests = 6": "min_requests = 3",
    }.items():
        text = text.replace(old, new)
    declaration.write_text(text)
    keys = ("timestamp", "input_length", "output_length")
    lines = [json.dumps(dict(zip(keys, row, strict=True))) for row in TRACE]
    (declaration.parent / "t.jsonl").write_text("\n".join(lines))
    (root / FOLDER).mkdir(parents=True)
    (root / FOLDER / "2026-01-01-cpu.json").write_text(json.dumps(calibration))
    summary = finish(root)
    assert (summary["valid"], summary["invalid"]) == (1, 0)
    return root / str(summary["recording"])


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with connect(path) as con:
        return con.execute(sql).fetchall()


def test_a_trace_is_sent_at_its_times_with_its_lengths(replayed: Path) -> None:
    found = rows(
        replayed,
        "SELECT (scheduled_ns - measured_ns) // 1000000, asked_prompt_tokens, asked_output_tokens,"
        " r.prompt_tokens, r.output_tokens FROM request r JOIN cell USING (cell_id)"
        " WHERE phase = 'measured' ORDER BY request_id",
    )
    assert found == [(due_ms, asked, out, asked, out) for due_ms, asked, out in TRACE]
    kept = rows(replayed, "SELECT load, in_flight, rate_per_s, connections, cold FROM cell")
    assert kept == [("trace", None, None, 4, False)]


def test_the_share_of_the_ceiling_is_that_of_the_measured_chunks(
    replayed: Path, calibration: dict[str, Any]
) -> None:
    ((kept, client, seconds),) = rows(
        replayed,
        "SELECT calibration, client, (ended_ns - measured_ns) / 1e9 FROM session JOIN cell"
        " USING (session_id)",
    )
    assert json.loads(kept) == calibration
    found = json.loads(client)
    assert (found["chunks"], found["requests"]) == (4 + 6 + 3, 3)
    assert found["ceiling_frac"] == pytest.approx(13 / seconds / 100)  # 3 / seconds / 1000 is less


@pytest.mark.parametrize(("reset", "cached_tokens"), [("true", 0), ("false", 16)])
def test_a_cell_finds_the_cache_of_the_one_before_unless_it_is_reset(
    tmp_path: Path, reset: str, cached_tokens: int
) -> None:
    """Two cells whose prompts begin with the same 16 tokens, which are two blocks of the cache."""
    root = root_with(tmp_path, flags=[*FLAGS, "--cache-block", "8"])
    declaration = root / "episodes" / "77-test" / "experiment.toml"
    shared = f"in_flight = 1\nshared_tokens = [16]\ncold = false\nreset_cache = {reset}"
    declaration.write_text(declaration.read_text().replace("in_flight = 2", shared))
    summary = finish(root)
    found = rows(
        root / str(summary["recording"]),
        "SELECT list(cached_tokens ORDER BY request_id) FROM request JOIN cell USING (cell_id)"
        " WHERE phase = 'measured' GROUP BY position ORDER BY position",
    )
    assert found == [([0, *[16] * 5],), ([cached_tokens, *[16] * 5],)]


OPEN = """
[[tier.cpu.sweep]]
name = "open"
endpoint = "completions"
prompt_tokens = [8]
output_tokens = 4
load = "poisson"
capacity_frac = [0.5]
capacity_of = "length"
connections = 8
warmup_requests = 1
min_requests = 2
"""


@pytest.fixture
def half(tmp_path: Path) -> Cell:
    """A cell at half of the capacity."""
    experiment = load(write(tmp_path, DECLARATION + OPEN))
    planned = cells(experiment, experiment.tiers["cpu"], ("a",))
    return next(each for each in planned if each.level.capacity_frac)


def test_a_prompt_shorter_than_what_the_server_adds_is_refused(
    half: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external, "added_tokens", lambda *_: 8)
    target = Target(get_engine("emulator"), "", "", lambda: True, list, str)
    tier = SimpleNamespace(variant=Variant)
    session: Any = SimpleNamespace(models={"": SimpleNamespace(tokenizer_path=None)}, tier=tier)
    said = "emulator: adds 8 tokens to every prompt at completions, so a prompt of 8 can't be sent"
    with pytest.raises(HarnessError, match=said):
        _worklist(session, target, half)
