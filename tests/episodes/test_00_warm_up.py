"""Episode 00's committed recording: what the issue of the page promises is in it."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from harness.recording.store import connect
from tests.episodes import committed

ROOT = Path(__file__).parents[2]
EPISODE = ROOT / "episodes" / "00-warm-up"
ENGINES = ("sglang", "transformers", "vllm")
LENGTHS = (32, 64, 128, 256, 512, 1024)


@pytest.fixture(scope="module")
def path() -> Path:
    return committed.finished("00")


@pytest.fixture
def con(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(path) as opened:
        yield opened


def rows(path: Path, name: str) -> list[dict]:
    return committed.rows("00", path, name)


def test_views_alone_give_ttft_by_engine_and_length_with_its_interval(
    con: duckdb.DuckDBPyConnection,
) -> None:
    found = con.execute(
        "SELECT engine, prompt_tokens, repeats, requests, low_ms < p50_ms AND p50_ms < high_ms "
        "FROM ttft_p50 WHERE sweep = 'length' ORDER BY engine, prompt_tokens"
    ).fetchall()
    assert found == [(engine, n, 5, 50, True) for engine in ENGINES for n in LENGTHS]


def test_every_cell_is_valid_and_every_engine_answered_right(
    con: duckdb.DuckDBPyConnection,
) -> None:
    verdicts = con.execute("SELECT verdict, count(*) FROM cell GROUP BY 1").fetchall()
    assert verdicts == [("VALID", 105)]
    answers = con.execute("SELECT DISTINCT contains(probe_answer, 'Paris') FROM engine_run")
    assert answers.fetchall() == [(True,)]


def test_the_engines_did_equal_work(path: Path) -> None:
    (holds,) = rows(path, "equal_work_holds")
    assert holds["prompts_equal"] is True
    work = rows(path, "equal_work")
    assert len({(row["requests"], row["tokens_in"], row["tokens_out"]) for row in work}) == 1
    assert {row["cached_tokens"] for row in work} <= {0, None}


def test_the_pool_in_vllms_log_is_the_formula_in_whole_blocks(path: Path) -> None:
    (model,) = rows(path, "model")
    bytes_per_token = 2 * model["layers"] * model["kv_heads"] * model["head_size"] * 4
    assert bytes_per_token == 46_080
    pool = {row["engine"]: row["pool_tokens"] for row in rows(path, "kv_pool")}
    assert pool["vllm"] == 2**30 // (128 * bytes_per_token) * 128


def test_vllm_reserves_whole_blocks_and_never_less_than_the_request_has(path: Path) -> None:
    used = [row for row in rows(path, "kv_use") if row["engine"] == "vllm"]
    need = [row for row in rows(path, "kv_need") if row["engine"] == "vllm"]
    assert used and {round(row["kv_used_tokens"], 6) % 128 for row in used} == {0}
    assert max(row["kv_used_tokens"] for row in used) >= max(row["tokens"] for row in need)


def test_every_arrival_has_a_kernel_stamp(path: Path) -> None:
    assert {row["unstamped_reads"] for row in rows(path, "client_health")} == {0}
