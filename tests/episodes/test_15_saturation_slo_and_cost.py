"""Episode 15's committed recording: what its page promises is in it."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from harness.experiment import load
from harness.rates import bracket, capacity_variant, rate_per_s
from harness.recording.store import connect
from harness.schedule import cells
from tests.episodes import committed

ROOT = Path(__file__).parents[2]
EPISODE = ROOT / "episodes" / "15-saturation-slo-and-cost"
DECLARED = load(EPISODE / "experiment.toml")
TIER = DECLARED.tiers["cpu"]
SWEEPS = {sweep.name: sweep for sweep in TIER.sweeps}
PLAIN = ("vllm", "sglang")


@pytest.fixture(scope="module")
def path() -> Path:
    return committed.finished("15")


@pytest.fixture
def con(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(path) as opened:
        yield opened


def rows(path: Path, name: str) -> list[dict]:
    return committed.rows("15", path, name)


def test_every_cell_of_the_declaration_was_recorded(con: duckdb.DuckDBPyConnection) -> None:
    planned = [
        (cell.position, cell.repeat, cell.variant, cell.level.sweep.name)
        for cell in cells(DECLARED, TIER, TIER.engines)
    ]
    found = con.execute("SELECT position, repeat, variant, sweep FROM cell ORDER BY 1").fetchall()
    assert found == planned


def test_every_rate_is_what_the_recording_before_it_asks_for(
    con: duckdb.DuckDBPyConnection, path: Path
) -> None:
    """Shares are of the plain engine's capacity, and a step is the middle of what is left."""
    recording: Any = SimpleNamespace(con=con, path=path)
    rates = dict(con.execute("SELECT position, rate_per_s FROM cell").fetchall())
    for cell in cells(DECLARED, TIER, TIER.engines):
        expected = rate_per_s(recording, TIER, cell)
        assert rates[cell.position] == (expected and pytest.approx(expected))
    assert capacity_variant(TIER, SWEEPS["engine-cap"], "vllm-cap") == "vllm"


def test_the_page_s_brackets_are_the_harness_s(path: Path) -> None:
    """The query has the rules of the search a second time: they must end at the same rates."""
    last = SWEEPS["search"].search_steps
    ends = {(row["engine"], row["repeat"]): row for row in rows(path, "found")}
    results = {
        (row["engine"], row["repeat"], row["search_step"]): row for row in rows(path, "steps")
    }
    final = [c for c in cells(DECLARED, TIER, TIER.engines) if c.level.search_step == last]
    with connect(path) as con:
        recording: Any = SimpleNamespace(con=con, path=path)
        left = {(c.variant, c.repeat): bracket(recording, TIER, c) for c in final}
    assert set(left) == set(ends)
    for place, (low, high) in left.items():
        step = results[*place, last]
        ended = {
            "held": (step["rate_per_s"], high),
            "not held": (low, step["rate_per_s"]),
            "says nothing": (low, high),
        }[step["result"]]
        assert (ends[place]["low_per_s"], ends[place]["high_per_s"]) == pytest.approx(ended)


def test_little_s_law_holds_on_the_closed_loop(con: duckdb.DuckDBPyConnection) -> None:
    """Rate times time is the level asked for, less the slots that run empty at the end."""
    for in_flight, product in con.execute(
        "SELECT c.in_flight, count(*) * avg(r.ended_ns - r.sent_ns)"
        "     / (max(c.ended_ns) - min(c.measured_ns))"
        " FROM cell c JOIN request r USING (cell_id)"
        " WHERE r.phase = 'measured' AND c.sweep = 'closed' GROUP BY c.cell_id, c.in_flight"
    ).fetchall():
        assert 0.6 * in_flight < product <= 1.001 * in_flight


def test_a_cap_holds_and_the_wait_is_where_the_cap_is(path: Path) -> None:
    found = {(row["engine"], row["cap"]): row for row in rows(path, "caps")}
    most = SWEEPS["front-cap"].connections
    for engine in PLAIN:
        free, inside = found[engine, "no cap"], found[engine, "cap in the engine"]
        assert inside["running"] <= most
        assert inside["queue_ms"] > free["queue_ms"]
        if front := found.get((engine, "cap in front")):
            assert front["front_ms"] > 10 * max(free["front_ms"], inside["front_ms"])


def test_a_full_pool_takes_requests_out_again_unless_they_are_held_back(path: Path) -> None:
    for row in rows(path, "pool"):
        assert (row["preempted"] > 0) == (not row["capped"]), row["variant"]


def test_the_same_answers_come_out_of_a_pool_that_overflowed(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """As many tokens as asked for, whether or not they were computed twice."""
    ((requests, whole),) = con.execute(
        "SELECT count(*), count(*) FILTER (output_tokens = asked_output_tokens)"
        " FROM measured_request WHERE sweep = 'pool'"
    ).fetchall()
    assert requests == whole > 0
