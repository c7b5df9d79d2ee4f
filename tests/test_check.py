"""`harness check --rejudge`: verdicts and the manifest follow the rows."""

from pathlib import Path

from harness import check
from harness.recording.store import connect
from harness.render import manifest
from tests.recording.conftest import cell, create, request


def recorded(root: Path) -> Path:
    """A checkout with one recording of two cells: one sound, one whose request failed."""
    (root / "docs").mkdir()
    path = root / "data" / "77" / "made.duckdb"
    recording = create(path)
    about = {"session_id": 1, "started_at": "2026-01-02", "started_ns": 0, "boot_id": ""}
    run = {"run_id": 1, "session_id": 1, "engine": "emulator", "variant": "emulator"}
    with recording.transaction():
        recording.insert("session", [about | {"harness_version": "0", "machine": {}}])
        recording.insert(
            "engine_run",
            [run | {"model_id": "emulator", "argv": [], "env": {"A": "b"}, "started_ns": 0}],
        )
        recording.insert("cell", [cell(1), cell(2)])
        recording.insert("request", [request(1, 1), request(2, 1, error="timeout")])
    recording.close()
    manifest.update(root, path)
    return path


def test_a_verdict_that_its_rows_do_not_bear_out_is_changed(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    assert [entry.valid_cells for entry in manifest.read(tmp_path)] == [2]
    said = list(check.run(tmp_path, refresh_views=False, rejudge=True))
    assert "data/77/made.duckdb: cell 2: errors: 1 of 1 failed, first: timeout" in said
    with connect(path) as con:
        found = con.execute("SELECT verdict FROM cell ORDER BY cell_id").fetchall()
    assert found == [("VALID",), ("INVALID",)]
    (entry,) = manifest.verify(tmp_path)  # the new hash is entered
    assert (entry.valid_cells, entry.invalid_cells) == (1, 1)


def test_judged_again_it_says_nothing_new(tmp_path: Path) -> None:
    recorded(tmp_path)
    list(check.run(tmp_path, refresh_views=False, rejudge=True))
    before = manifest.read(tmp_path)
    said = list(check.run(tmp_path, refresh_views=False, rejudge=True))
    assert [line for line in said if "cell" in line] == []
    assert manifest.read(tmp_path) == before
