"""A recording of the version before, with its columns as they were, comes out the same."""

from pathlib import Path

import duckdb
import pytest

from harness.errors import HarnessError
from harness.recording.migrate import migrate
from harness.recording.store import connect
from tests.recording.conftest import cell, create, request

# What version 4 added, taken back.
ADDED = {
    "cell": "kind extra temperature ends_itself",
    "request": "text_id extra expected",
}
TABLES = "attempt job kernel_sample token_score training_step"


def version_3(path: Path) -> Path:
    recording = create(path)
    with recording.transaction():
        recording.insert("cell", [cell(1)])
        recording.insert("request", [request(1, 7)])
    views = recording.con.execute(
        "SELECT view_name FROM duckdb_views() WHERE NOT internal"
    ).fetchall()
    for (view,) in views:
        recording.con.execute(f"DROP VIEW {view}")
    recording.con.execute("UPDATE recording SET schema_version = 3")
    for table in TABLES.split():
        recording.con.execute(f"DROP TABLE {table}")
    for table, columns in ADDED.items():
        for column in columns.split():
            recording.con.execute(f"ALTER TABLE {table} DROP {column}")
    recording.close()
    return path


def test_rows_keep_their_values(tmp_path: Path) -> None:
    path = version_3(tmp_path / "old.duckdb")
    with pytest.raises(HarnessError, match=r"schema version 3.*harness check --refresh-views"):
        connect(path)
    assert migrate(path) is True
    with connect(path) as con:
        assert con.execute(
            "SELECT request_id, chunk_gap_us, text_id, extra, expected FROM request"
        ).fetchall() == [(7, [10_000, 30_000], None, None, None)]
        assert con.execute(
            "SELECT cell_id, kind, extra, temperature, ends_itself FROM cell"
        ).fetchall() == [(1, None, None, 0, False)]
        assert con.execute("SELECT count(*) FROM attempt, job").fetchall() == [(0,)]
        assert con.execute("SELECT from_sent_ms FROM ttft").fetchall() == [(20,)]
    assert migrate(path) is False


def test_a_version_that_is_unknown_is_left_alone(tmp_path: Path) -> None:
    path = version_3(tmp_path / "old.duckdb")
    with duckdb.connect(str(path)) as con:
        con.execute("UPDATE recording SET schema_version = 99")
    before = path.read_bytes()
    with pytest.raises(HarnessError, match="version 99"):
        migrate(path)
    assert path.read_bytes() == before


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "torn.duckdb"
    path.write_bytes(b"no database")
    with pytest.raises(HarnessError, match=r"torn\.duckdb: could not be migrated"):
        migrate(path)
