"""A recording of the version before, with its columns as they were, comes out the same."""

from pathlib import Path

import duckdb
import pytest

from harness.errors import HarnessError
from harness.recording.migrate import migrate
from harness.recording.store import connect
from tests.recording.conftest import MS, cell, create, request

# What version 2 added or renamed, taken back: request 7 is as version 1 wrote it.
TO_VERSION_1 = f"""
UPDATE recording SET schema_version = 1;
ALTER TABLE session DROP calibration;
ALTER TABLE engine_run DROP variant;
ALTER TABLE engine_run DROP fault;
ALTER TABLE request ADD COLUMN prompt_sha256 VARCHAR;
ALTER TABLE request ADD COLUMN chunk_offset_ns BIGINT[];
UPDATE request SET prompt_sha256 = '00000000000000ff' || repeat('a', 48),
    chunk_offset_ns = [{20 * MS}, {30 * MS + 400}, {60 * MS - 400}];
"""
ADDED = {
    "cell": "variant added_tokens load rate_per_s burstiness capacity_frac connections processes"
    " cold",
    "request": "process session turn prompt_hash asked_prompt_tokens asked_output_tokens"
    " chunk_gap_us token_text token_gap",
}


def version_1(path: Path) -> Path:
    recording = create(path)
    with recording.transaction():
        recording.insert("cell", [cell(1)])
        recording.insert("request", [request(1, 7, chunk_shared=[True, False, True])])
    views = recording.con.execute(
        "SELECT view_name FROM duckdb_views() WHERE NOT internal"
    ).fetchall()
    for (view,) in views:
        recording.con.execute(f"DROP VIEW {view}")
    recording.con.execute(TO_VERSION_1)
    for table, columns in ADDED.items():
        for column in columns.split():
            recording.con.execute(f"ALTER TABLE {table} DROP {column}")
    recording.close()
    return path


def test_rows_keep_their_values(tmp_path: Path) -> None:
    path = version_1(tmp_path / "old.duckdb")
    with pytest.raises(HarnessError, match=r"schema version 1.*harness check --refresh-views"):
        connect(path)
    assert migrate(path) is True
    with connect(path) as con:
        assert con.execute(
            "SELECT prompt_hash, chunk_gap_us, asked_prompt_tokens, asked_output_tokens, process "
            "FROM request"
        ).fetchall() == [(255, [10_000, 30_000], 8, 4, 0)]
        assert con.execute(
            "SELECT variant, load, connections, client ->> 'shared_chunks' FROM cell"
        ).fetchall() == [("emulator", "closed", 1, "1")]
        assert con.execute("SELECT from_sent_ms FROM ttft").fetchall() == [(20,)]
    assert migrate(path) is False


def test_a_version_that_is_unknown_is_left_alone(tmp_path: Path) -> None:
    path = version_1(tmp_path / "old.duckdb")
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
