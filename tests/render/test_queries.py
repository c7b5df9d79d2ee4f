from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import HarnessError
from harness.render.queries import Cache, Query, Result, parse, run
from tests.render import recordings


def test_blocks_are_split_at_their_names_and_keep_their_comments() -> None:
    text = "-- about the file\n\n-- name: one\n-- why\nSELECT 1;\n\n-- name: two\nSELECT\n  2\n"
    assert parse(text, "q.sql") == {
        "one": Query("one", "-- why\nSELECT 1"),
        "two": Query("two", "SELECT\n  2"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1", r"q\.sql:1: SQL before the first"),
        ("-- name: a b\nSELECT 1", r"q\.sql:1: 'a b' is no name"),
        ("-- name: a\nSELECT 1\n-- name: a\nSELECT 2", r"q\.sql:3: a second query"),
        ("-- name: a\n-- only a comment\n", "the query 'a' is empty"),
        ("-- name: a\n-- uses: b\nSELECT 1", r"q\.sql:2: no part above is named 'b'"),
        ("-- name: a\nSELECT 1\n-- name: b\n-- uses: a\nSELECT 2", r"q\.sql:4: no part above"),
    ],
)
def test_a_fault_names_file_and_line(text: str, message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        parse(text, "q.sql")


def test_a_part_is_written_out_before_each_query_that_uses_it() -> None:
    text = """
-- part: one
-- the first
SELECT 1 AS a;
-- part: two
-- uses: one
WITH x AS (SELECT 2 AS b) SELECT a + b AS c FROM one, x
-- name: sum
-- what it says
-- uses: two
SELECT c FROM two
-- name: both
-- uses: two, one
WITH y AS (SELECT 10 AS d) SELECT a, c, d FROM one, two, y
-- name: alone
SELECT 5
"""
    written = {name: query.sql for name, query in parse(text, "q.sql").items()}
    assert list(written) == ["sum", "both", "alone"]
    assert written["sum"].startswith(
        "-- what it says\nWITH -- the first\none AS (\nSELECT 1 AS a\n)"
    )
    con = duckdb.connect()
    found = [con.execute(sql).fetchone() for sql in written.values()]
    assert found == [(3,), (1, 3, 10), (5,)]


@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True), st.integers()))
def test_what_is_written_is_read(values: dict[str, int]) -> None:
    text = "".join(f"-- name: {name}\nSELECT {value};\n" for name, value in values.items())
    assert {k: q.sql for k, q in parse(text, "q.sql").items()} == {
        name: f"SELECT {value}" for name, value in values.items()
    }


def test_rows_of_a_recording(tmp_path: Path) -> None:
    recording = recordings.write(tmp_path / "a.duckdb")
    query = parse(recordings.QUERIES, "q.sql")["ttft_one"]
    # factor * (64 + 10 * 2) * 0.1 ms, the median over repeats 1, 2, 3
    assert run(recording, query, "q.sql").rows == [
        ("sglang", pytest.approx(25.2)),
        ("transformers", pytest.approx(42.0)),
        ("vllm", pytest.approx(16.8)),
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM cell",
        "SELECT 1; SELECT 2",
        "COPY cell TO 'x.csv'",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT nothing FROM cell",
    ],
)
def test_only_one_harmless_select_runs(tmp_path: Path, sql: str) -> None:
    recording = recordings.write(tmp_path / "a.duckdb")
    before = recording.read_bytes()
    with pytest.raises(HarnessError, match=r"q\.sql: the query 'x'"):
        run(recording, Query("x", sql), "q.sql")
    assert recording.read_bytes() == before


def test_text_for_a_chart_is_escaped() -> None:
    frame = Result(["t", "n"], [("<b>x</b>", 1)]).frame()
    assert frame.t[0] == "&lt;b&gt;x&lt;/b&gt;" and frame.n[0] == 1


def test_cache_keeps_forgets_and_survives_a_torn_entry(tmp_path: Path) -> None:
    kept = Cache(tmp_path)
    key, found = kept.get("a", "b")
    assert found is None
    kept.put(key, [1])
    assert kept.get("a", "b") == (key, [1])
    assert kept.get("ab", "")[1] is None
    (tmp_path / ".cache" / "render" / key).write_bytes(b"torn")
    assert kept.get("a", "b")[1] is None
    Cache(tmp_path).prune()
    assert not list((tmp_path / ".cache" / "render").iterdir())
