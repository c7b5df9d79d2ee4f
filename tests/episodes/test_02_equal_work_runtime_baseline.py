"""Episode 02's committed recording: what the issue of the page promises is in it."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from harness.recording.store import connect
from tests.episodes import committed

ROOT = Path(__file__).parents[2]
EPISODE = ROOT / "episodes" / "02-equal-work-runtime-baseline"
COMPARED = ["sglang", "transformers", "transformers-batching", "vllm"]
BATCHING = ["sglang", "sglang-bf16", "transformers-batching", "transformers-batching-bf16", "vllm"]


@pytest.fixture(scope="module")
def path() -> Path:
    return committed.finished("02")


@pytest.fixture
def con(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(path) as opened:
        yield opened


def rows(path: Path, name: str) -> list[dict]:
    return committed.rows("02", path, name)


def test_the_runtimes_did_equal_work(path: Path) -> None:
    (holds,) = rows(path, "equal_work_holds")
    assert holds["prompts_equal"] is True
    work = rows(path, "equal_work")
    for sweep, requests in (("speed", 60), ("chat", 8)):
        part = [row for row in work if row["sweep"] == sweep]
        assert [row["variant"] for row in part] == COMPARED
        counted = {(row["requests"], row["tokens_in"], row["tokens_out"]) for row in part}
        assert counted == {(requests, 64 * requests, 32 * requests)}
        assert len({row["prompts_hash"] for row in part}) == 1
    assert {row["cached_tokens"] for row in work} <= {0, None}


def test_the_invalid_cells_are_those_that_answered_wrongly(con: duckdb.DuckDBPyConnection) -> None:
    found = con.execute(
        "SELECT DISTINCT variant, split_part(reasons[1], ':', 1) FROM cell WHERE verdict <> 'VALID'"
    ).fetchall()
    assert found == [("vllm-bf16", "wrong_answer")]


def test_the_same_prompts_were_asked_alone_and_in_company(con: duckdb.DuckDBPyConnection) -> None:
    found = con.execute(
        "SELECT variant, in_flight, count(DISTINCT prompt_hash), bit_xor(prompt_hash)"
        " FROM measured_request WHERE sweep IN ('alone', 'batch') GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    levels = [(variant, n) for variant in BATCHING for n in (1, 2, 8, 16)]
    assert [row[:2] for row in found] == sorted([*levels, ("transformers", 1)])
    assert {row[2:] for row in found} == {(16, found[0][3])}


def test_token_texts_join_to_the_answer(con: duckdb.DuckDBPyConnection) -> None:
    asked = con.execute(
        "SELECT variant, bool_and(array_to_string(token_text, '') = output_text),"
        " bool_and(len(token_gap) = output_tokens) FROM measured_request"
        " WHERE token_text IS NOT NULL GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert asked == [(v, True, True) for v in ("sglang", "sglang-bf16", "vllm")]
