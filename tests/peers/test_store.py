"""The file that a benchmark leaves: results are medians over repeats, and the site can read it."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

from harness.errors import HarnessError
from harness.peers.store import SCHEMA, Store
from harness.render import manifest, source


def run(store: Store, run_id: int, tool: str, repeat: int, gap_error_ms: float) -> None:
    row = (run_id, tool, repeat, 20, 1000.0, ["python"], 0, None, 2.0, 20, 20, 1_000_000)
    store.insert("bench_run", *row, 1000.0, 990.0, 30.0, 12.0)
    store.errors(run_id, "gap", np.array([gap_error_ms * 1e6] * 2))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "peers" / "2026-11-30-cpu.duckdb"
    store = Store(path, "cpu")
    store.insert("session", 1, "abc", '{"cpu": "a processor", "cores": 2}', 20, 200, 4.0, 1, 20)
    store.insert("tool", "ours", 0, "", "abc", "all", "number", None)
    for repeat, error_ms in enumerate((1.0, 5.0, 2.0), 1):
        run(store, repeat, "ours", repeat, error_ms)
    store.close()
    return path


def test_a_result_is_the_median_over_repeats(path: Path) -> None:
    with duckdb.connect(str(path), read_only=True) as db:
        found = db.execute(
            "SELECT repeats, gap_p99_ms, gap_p99_worst_ms, cpu_s_per_million, ttft_p50_ms"
            " FROM result"
        ).fetchall()
    assert found == [(3, 2.0, 5.0, 42.0, None)]


def test_the_site_reads_it_like_any_recording(path: Path) -> None:
    root = path.parents[2]
    entry = manifest.update(root, path)
    assert (entry.tier, entry.finished, entry.valid_cells) == ("cpu", True, 3)
    found = source.read(root, entry)
    assert [(each.engine, each.command) for each in found.runs] == [("ours", "python")]


def test_a_file_is_never_written_over(path: Path) -> None:
    with pytest.raises(HarnessError, match="is there already"):
        Store(path, "cpu")


def test_every_table_and_column_of_it_is_explained(path: Path) -> None:
    with duckdb.connect(str(path), read_only=True) as db:
        unexplained = db.execute(
            "SELECT table_name, column_name FROM duckdb_columns()"
            " JOIN duckdb_tables() USING (table_name)"
            " WHERE duckdb_columns.comment IS NULL OR duckdb_tables.comment IS NULL"
        ).fetchall()
    assert unexplained == []
    assert SCHEMA.exists()
