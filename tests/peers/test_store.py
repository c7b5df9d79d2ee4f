"""The file that a benchmark leaves: results are medians over the repeats without a fault, the site
can read it, and the page's queries say of it what a hand would."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from harness.errors import HarnessError
from harness.peers.__main__ import _print_rows
from harness.peers.store import SCHEMA, Store
from harness.render import manifest, queries, source

ROOT = Path(__file__).parents[2]
QUERIES = queries.parse((ROOT / "episodes/91-peers/queries.sql").read_text(), "queries.sql")


def run(
    store: Store,
    run_id: int,
    tool: str,
    repeat: int,
    gap_error_ms: float,
    rate: int = 1000,
    fault: str | None = None,
    ttft_error_ms: float | None = None,
) -> None:
    row = (run_id, tool, repeat, 20, rate, ["python"], 0, fault, 2.0, 20, 20, 1_000_000)
    store.insert("bench_run", *row, 8, 6, 0.98 * rate, 0.97 * rate, 30.0, 12.0)
    store.errors(run_id, "gap", np.array([gap_error_ms * 1e6] * 2))
    if ttft_error_ms is not None:
        store.errors(run_id, "ttft", np.array([ttft_error_ms * 1e6]))


def open_store(path: Path, *tools: str) -> Store:
    store = Store(path, "cpu")
    machine = '{"cpu": "a processor", "cores": 2}'
    store.insert("session", 1, "abc", machine, 20, 200, 4.0, 1, 20, 0.5)
    for place, tool in enumerate(tools):
        store.insert("tool", tool, place, "", "abc", "all", "number", None)
    return store


def rows(path: Path, name: str) -> list[dict[str, Any]]:
    return queries.run(path, QUERIES[name], "queries.sql").records()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "peers" / "2026-11-30-cpu.duckdb"
    store = open_store(path, "ours")
    for repeat, error_ms in enumerate((1.0, 5.0, 2.0), 1):
        run(store, repeat, "ours", repeat, error_ms)
    store.close()
    return path


def test_a_result_is_the_median_over_repeats(path: Path) -> None:
    with duckdb.connect(str(path), read_only=True) as db:
        found = db.execute(
            "SELECT repeats, gap_p99_ms, gap_p99_worst_ms, cpu_s_per_million, ttft_p50_ms,"
            " gaps_compared_frac FROM result"
        ).fetchall()
    assert found == [(3, 2.0, 5.0, 42.0, None, 0.75)]


def test_a_run_that_lost_requests_is_in_no_result(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    store = open_store(path, "ours")
    run(store, 1, "ours", 1, 4.0)
    run(store, 2, "ours", 2, 0.001, fault="1 of 20 requests failed or were lost")
    run(store, 3, "ours", 1, 0.001, rate=5000, fault="7 of 20 requests failed or were lost")
    store.close()
    (result,) = rows(path, "errors")
    assert (result["rate"], result["repeats"], result["gap_p99_ms"]) == (1000, 1, 4.0)
    assert [row["ceiling_per_s"] for row in rows(path, "summary")] == [None]
    assert [(row["rate"], row["why"]) for row in rows(path, "left_out")] == [
        (1000, "repeat 2: 1 of 20 requests failed or were lost"),
        (5000, "repeat 1: 7 of 20 requests failed or were lost"),
    ]


def test_a_result_does_not_weigh_a_run_by_its_measures(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    store = open_store(path, "ours")
    for repeat, cpu_s in enumerate((1.0, 2.0), 1):
        row = (repeat, "ours", repeat, 20, 1000, ["python"], 0, None, 2.0, 20, 20, 1_000_000)
        store.insert("bench_run", *row, 8, 8, 1000.0, 990.0, cpu_s, 0.0)
        for measure in ("ttft", "gap", "mean_gap")[: 3 // repeat]:  # three of the first, then one
            store.errors(repeat, measure, np.array([1e6]))
    store.close()
    (result,) = rows(path, "errors")
    assert result["live_cpu_s_per_million"] == 1.5


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """The recorder at three rates; a peer that held the lowest and was hopeless at the next."""
    path = tmp_path / "a.duckdb"
    store = open_store(path, "ours", "peer")
    run(store, 1, "ours", 1, 0.01, ttft_error_ms=0.5)
    run(store, 2, "peer", 1, 0.5, ttft_error_ms=4.0)
    run(store, 3, "ours", 1, 0.02, rate=5000, ttft_error_ms=0.5)
    run(store, 4, "peer", 1, 30.0, rate=5000, ttft_error_ms=40.0)
    run(store, 5, "ours", 1, 0.04, rate=50_000, ttft_error_ms=0.5)
    store.insert("untried", "peer", 50_000, 5000)
    store.close()
    return path


def test_goals_are_judged_at_the_worst_rate_and_name_those_without_a_peer(full: Path) -> None:
    found = [(row["found"], row["met"], row["note"]) for row in rows(full, "goals")]
    assert found == [
        (0.04, "yes", "0.040 in the worst repeat"),
        (pytest.approx(8.0), "no", "worst at 1,000; no peer has a p99 at 50,000"),  # TTFT
        (pytest.approx(50.0), "yes", "worst at 1,000; no peer has a p99 at 50,000"),  # gaps
        (10.0, "yes", "the recorder held 50,000; the best peer 1,000, and not 5,000"),
    ]


def test_ceilings_stand_beside_the_next_rate_and_costs_at_a_shared_one(full: Path) -> None:
    found = [
        (row["tool"], row["ceiling_per_s"], row["past_per_s"], row["cpu_rate"])
        for row in rows(full, "summary")
    ]
    assert found == [("ours", 50_000, None, 5000), ("peer", 1000, 5000, 5000)]
    assert [row["why"] for row in rows(full, "left_out")] == ["not tried: hopeless at 5,000"]
    assert {row["rate"] for row in rows(full, "winners")} == {1000, 5000}


def test_the_command_prints_the_page_s_rows(full: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _print_rows(full)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line in ("summary", "faults", "goals")] == [
        "summary",
        "faults",
        "goals",
    ]
    assert "the recorder held 50,000; the best peer 1,000, and not 5,000" in lines[-1]


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
