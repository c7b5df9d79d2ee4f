"""Episode 01's committed recording: what its page promises is in it."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from harness.analysis.cells import Cells
from harness.analysis.compare import NOT_COMPARABLE, compare
from harness.experiment import load
from harness.recording.store import connect
from tests.episodes import committed

ROOT = Path(__file__).parents[2]
EPISODE = ROOT / "episodes" / "01-measure-what-matters"


@pytest.fixture(scope="module")
def path() -> Path:
    return committed.finished("01")


@pytest.fixture
def con(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(path) as opened:
        yield opened


def rows(path: Path, name: str) -> list[dict]:
    return committed.rows("01", path, name)


def test_every_level_of_the_declaration_was_recorded_in_every_repeat(
    con: duckdb.DuckDBPyConnection,
) -> None:
    tier = load(EPISODE / "experiment.toml").tiers["cpu"]
    closed, opened = tier.sweeps[:2]
    for engine in tier.engines:
        for column, sweep, levels in (
            ("in_flight", "closed", closed.in_flight),
            ("capacity_frac", "open", opened.capacity_frac),
        ):
            found = con.execute(
                f"SELECT {column}, count(DISTINCT repeat) FROM cell"
                " WHERE engine = ? AND sweep = ? GROUP BY ALL ORDER BY ALL",
                [engine, sweep],
            ).fetchall()
            assert found == [(level, tier.repeats) for level in levels]


def test_a_share_of_capacity_is_the_same_rate_in_every_repeat(
    con: duckdb.DuckDBPyConnection,
) -> None:
    for engine, frac, low, high, capacity in con.execute(
        "SELECT engine, capacity_frac, min(rate_per_s), max(rate_per_s), ("
        "   SELECT max(requests_per_s) FROM outcome o WHERE o.engine = c.engine"
        "   AND o.sweep = 'closed' AND o.repeat = 1 AND o.verdict = 'VALID')"
        " FROM cell c WHERE sweep = 'open' GROUP BY ALL"
    ).fetchall():
        assert low == high == pytest.approx(frac * capacity), engine


def test_little_s_law_holds_on_the_closed_loop(path: Path) -> None:
    """Below the level by the end of each cell, when slots run empty; never above it."""
    for row in rows(path, "little"):
        assert 0.75 * row["in_flight"] < row["product"] <= 1.001 * row["in_flight"]


def test_one_and_two_load_processes_agree(con: duckdb.DuckDBPyConnection) -> None:
    for metric in ("ttft", "tpot", "output_tok_per_s"):
        found = compare(
            con,
            Cells({"engine": "vllm", "sweep": "two-processes", "processes": 2}, "two"),
            Cells({"engine": "vllm", "sweep": "one-process", "processes": 1}, "one"),
            metric,
        )
        assert found.verdict == "tie", found.sentence


def test_no_sentence_compares_what_is_invalid(con: duckdb.DuckDBPyConnection) -> None:
    """A level that lost two repeats is refused, and every other one proves equal work."""
    for (level,) in con.execute(
        "SELECT DISTINCT in_flight FROM cell WHERE sweep = 'closed'"
    ).fetchall():
        lost = con.execute(
            "SELECT count(DISTINCT repeat) FROM cell"
            " WHERE sweep = 'closed' AND in_flight = ? AND verdict <> 'VALID'",
            [level],
        ).fetchone()
        keys = {"sweep": "closed", "in_flight": level}
        sides = [Cells(keys | {"engine": engine}) for engine in ("vllm", "sglang")]
        found = compare(con, sides[0], sides[1], "ttft")
        assert (found.verdict == NOT_COMPARABLE) == (lost is not None and lost[0] > 1)


def test_the_slogan_s_definitions_are_in_order(path: Path) -> None:
    """The best level is at least the highest one, and a log's best line is no mean."""
    for engine in ("vllm", "sglang"):
        by_place = {
            r["number"]: r["tok_per_s"] for r in rows(path, "slogan") if r["engine"] == engine
        }
        assert set(by_place) == set(range(1, 9))
        assert by_place[3] >= by_place[2]
        assert by_place[4] >= by_place[2]  # without the first tokens
        assert by_place[7] == pytest.approx(by_place[2] * (64 + 24) / 24)
