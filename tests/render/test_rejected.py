"""What was rejected is shown, with its reason; what the emulator did is called so."""

from pathlib import Path

import duckdb
import pytest

from harness.render import figure, manifest, pages, registry
from tests.render import recordings
from tests.render.conftest import REPO, checkout

PAGE = "docs/reference/rejected-runs.md"


def test_every_rejected_cell_is_listed_with_its_reason_and_its_page(root: Path) -> None:
    pages.build_pages(root)
    page = (root / PAGE).read_text(encoding="utf-8")
    assert "Recordings: 1. Cells: 54, of which INVALID: 1." in page
    assert "## 00 · Warm-up, cpu, 2026-11-30" in page
    assert "<td>client_cpu</td>" in page
    assert 'href="../../episodes/00-warm-up/"' in page
    assert "vllm, prompt_length, prompt 32, output 8, in flight 1, repeat 1" in page


def test_a_cell_that_was_mended_leaves_the_page(root: Path) -> None:
    path = root / "data" / "00" / "made.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute("UPDATE cell SET verdict = 'VALID', reasons = []")
    manifest.update(root, path)
    pages.build_pages(root)
    page = (root / PAGE).read_text(encoding="utf-8")
    assert "of which INVALID: 0." in page and "<table" not in page


def test_markup_in_a_recording_stays_text(tmp_path: Path) -> None:
    root = checkout(tmp_path, hostile=True)
    pages.build_pages(root)
    page = (root / PAGE).read_text(encoding="utf-8")
    assert "<script>" not in page and "client_cpu&lt;script&gt;" in page
    assert recordings.MARKUP not in page


@pytest.mark.parametrize("tier", ["cpu", "gpu", "emulator"])
def test_what_the_emulator_did_is_never_called_an_engines(tier: str) -> None:
    badge = figure.badges(("recorded",), tier)
    assert ("tbt-kind-simulated" in badge) == (tier == "emulator")
    assert ("recorded from the emulator" in badge) == (tier == "emulator")


def test_demonstrations_are_no_episodes() -> None:
    shown = registry.demonstrations(REPO)
    assert "how-benchmarks-lie" in [chapter.slug for chapter in shown]
    assert not set(shown) & set(registry.read(REPO))


def test_a_demonstration_that_is_not_recorded_says_how(root: Path) -> None:
    pages.build_pages(root)
    page = (root / "docs/reference/how-benchmarks-lie.md").read_text(encoding="utf-8")
    assert "Not recorded yet. To record: <code>make record EPISODE=90</code>" in page
