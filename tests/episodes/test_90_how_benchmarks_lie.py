"""The demonstration's recording shows what its page says, on a server whose truth is declared."""

import re
from pathlib import Path
from typing import Any

import pytest

from harness.recording.store import connect
from harness.render import manifest, queries
from harness.render.pages import build_pages
from tests.render.conftest import checkout

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "episodes" / "90-how-benchmarks-lie"


@pytest.fixture(scope="module")
def path() -> Path:
    entry = manifest.newest(manifest.verify(ROOT), "90", "cpu")
    assert entry is not None, "no finished recording of the demonstration is listed"
    return ROOT / entry.file


def rows(path: Path, name: str) -> list[dict[str, Any]]:
    known = queries.parse((FOLDER / "queries.sql").read_text(), "queries.sql")
    return queries.run(path, known[name], "queries.sql").records()


def test_five_definitions_disagree_and_ours_is_the_truth(path: Path) -> None:
    """A chunk of three tokens every 60 ms; the emulator is late at times and never early."""
    found = [row["ms"] for row in rows(path, "itl_definitions")]
    assert found == pytest.approx([60, 20, 0, 60, 25], rel=0.15)


def test_the_dead_server_wins_by_status_and_is_refused(path: Path) -> None:
    found = {row["server"]: row for row in rows(path, "success")}
    assert found["dead"]["answers_per_s"] > 5 * found["sound"]["answers_per_s"]
    assert found["dead"]["success_percent"] == found["dead"]["output_tok_per_s"] == 0
    assert (found["sound"]["verdict"], found["dead"]["verdict"]) == ("VALID", "INVALID")


def test_the_role_is_no_token_and_the_stall_is_seen_from_the_schedule(path: Path) -> None:
    (both,) = rows(path, "role_p50")
    assert both["first_chunk_ms"] < 20 and both["ttft_ms"] >= 149
    (stall,) = rows(path, "stall_summary")
    assert stall["sent_slow"] == 1 and stall["scheduled_slow"] > 30


def test_each_cell_is_valid_or_refused_as_its_page_says(path: Path) -> None:
    with connect(path) as con:
        found = con.execute("SELECT variant, reasons FROM cell").fetchall()
    names = {
        variant: [reason.partition(":")[0] for reason in reasons] for variant, reasons in found
    }
    assert names.pop("dead") == ["errors"]
    assert names.pop("stalling")[0] == "schedule_lag"
    assert set(names) == {"grouped", "sound", "polite"} and not any(names.values())


def test_nothing_on_its_page_passes_for_an_engines(path: Path, tmp_path: Path) -> None:
    root = checkout(tmp_path)
    (root / "data" / "90").mkdir()
    (root / "data" / "90" / path.name).write_bytes(path.read_bytes())
    folder = root / "episodes" / FOLDER.name
    folder.mkdir()
    for file in FOLDER.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    manifest.update(root, root / "data" / "90" / path.name)
    build_pages(root)
    page = (root / "docs" / "reference" / "how-benchmarks-lie.md").read_text(encoding="utf-8")
    labels = re.findall(r'class="tbt-kind tbt-kind-(\w+)">([^<]*)', page)
    assert len(labels) == 5
    assert set(labels) == {("simulated", "simulated: recorded from the emulator")}
    assert "recorded on cpu" not in page
