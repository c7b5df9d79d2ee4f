"""Goodput and cost on the hand-made recording: TTFT of fast is 11 to 22 ms, TPOT 10 ms."""

import pytest

from harness.analysis.cells import Cells
from harness.analysis.cost import Price, cost, declared_price
from harness.analysis.goodput import goodput
from harness.errors import HarnessError
from harness.recording.store import Recording

FAST = Cells({"engine": "fast"})


def change(made: Recording, sql: str) -> None:
    with made.transaction():
        made.con.execute(sql)


def test_a_request_must_meet_every_bound(made: Recording) -> None:
    fast, slow = goodput(made.con, Cells({}), {"ttft": 20, "tpot": 15})
    assert (fast.variant, fast.requests, fast.met) == ("fast", 60, 50)  # 11 to 20 of 11 to 22 ms
    assert fast.met_frac == 10 / 12 and fast.met_per_s == 50 / 10  # five phases of 2 s
    assert (slow.met, slow.met_each_frac("tpot"), slow.met_each_frac("ttft")) == (0, 0, 0)
    assert [each.met for each in fast.repeats] == [10] * 5


def test_failed_requests_and_missing_values_stay_in_the_denominator(made: Recording) -> None:
    change(made, "UPDATE request SET error = 'cut' WHERE cell_id = 1 AND request_id <= 3")
    change(made, "UPDATE request SET output_tokens = 1 WHERE cell_id = 2 AND request_id = 1")
    (fast,) = goodput(made.con, FAST, {"tpot": 10})
    assert (fast.requests, fast.failed, fast.met) == (60, 3, 56)
    (fast,) = goodput(made.con, FAST, {})  # no bound: every success
    assert fast.met == 57


def test_from_the_scheduled_time_the_wait_counts(made: Recording) -> None:
    (fast,) = goodput(made.con, FAST, {"ttft_from_scheduled": 22})  # sent 10 ms late: 21 to 32
    assert fast.met == 10


def test_invalid_cells_are_left_out_and_levels_kept_apart(made: Recording) -> None:
    change(made, "UPDATE cell SET verdict = 'INVALID' WHERE cell_id = 1")
    change(made, "UPDATE cell SET in_flight = 16 WHERE cell_id = 2")
    found = goodput(made.con, FAST, {"tpot": 10})
    assert [(each.level["in_flight"], each.requests) for each in found] == [(1, 36), (16, 12)]
    change(made, "UPDATE cell SET verdict = 'INVALID'")
    with pytest.raises(HarnessError, match="no VALID cell fits engine=fast"):
        goodput(made.con, FAST, {"tpot": 10})


def test_the_gaps_of_a_request_are_bounded_by_their_largest_and_their_p99(made: Recording) -> None:
    """Request 1 of cell 1: gaps of 1 to 100 ms, two tokens at the end of the last."""
    gaps_us, tokens = [1000 * ms for ms in range(1, 101)], [1] * 100 + [2]
    change(
        made,
        f"UPDATE request SET chunk_gap_us = {gaps_us}, chunk_tokens = {tokens},"
        " chunk_shared = [false for x in range(101)] WHERE cell_id = 1 AND request_id = 1",
    )
    # 101 values of ITL: 1 to 99 ms and 50 ms twice. All the other requests: 10 ms.
    for name, highest_ms in (
        ("inter_chunk_max", 100),
        ("inter_chunk_p99", 99),
        ("itl_max", 99),
        ("itl_p99", 98),
    ):
        assert [
            goodput(made.con, FAST, {name: bound})[0].met for bound in (highest_ms - 1, highest_ms)
        ] == [59, 60]


def test_a_request_without_gaps_meets_no_bound_on_them(made: Recording) -> None:
    change(
        made,
        "UPDATE request SET chunk_gap_us = [], chunk_tokens = [4], chunk_shared = [false]"
        " WHERE cell_id = 1 AND request_id = 1",
    )
    assert [goodput(made.con, FAST, {name: 1e9})[0].met for name in ("itl_max", "ttft")] == [59, 60]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("power", "is not recorded"),
        ("output_tok_per_s", "has one value a cell"),
        ("itl", "has many values a request: take itl_max or itl_p99"),
        ("inter_chunk", "has many values a request: take inter_chunk_max or inter_chunk_p99"),
    ],
)
def test_a_bound_on_what_a_request_has_no_value_of_says_why(
    made: Recording, name: str, why: str
) -> None:
    with pytest.raises(HarnessError, match=f"'{name}' {why}; known: ttft, .*tpot, e2e, .*itl_max"):
        goodput(made.con, FAST, {"ttft": 1, name: 1})


def test_cost_of_the_measured_phases_and_of_all_the_time(made: Recording) -> None:
    (fast,) = cost(made.con, FAST, {"ttft": 20}, Price(3.6, "core", 2))  # 0.002 USD a second
    assert (fast.measured_s, fast.held_s, fast.output_tokens, fast.met) == (10, 20, 240, 50)
    assert fast.usd_per_million_tokens(fast.measured_s) == pytest.approx(10 * 0.002 / 240 * 1e6)
    assert fast.usd_per_million_tokens(fast.held_s) == pytest.approx(20 * 0.002 / 240 * 1e6)
    assert fast.usd_per_thousand_met(fast.held_s) == pytest.approx(20 * 0.002 / 50 * 1000)


def test_a_run_is_shared_by_its_cells_and_nothing_met_has_no_price(made: Recording) -> None:
    change(made, "UPDATE cell SET in_flight = 2 WHERE cell_id = 1")
    one, other = cost(made.con, FAST, {"ttft": 1}, Price(3.6, "gpu", 1))
    assert (one.held_s, other.held_s) == (16, 4)  # four cells of 2 s, and one, of a run of 20 s
    assert one.usd_per_thousand_met(one.held_s) is None


def test_the_price_is_the_declared_one_of_the_recorded_tier(made: Recording) -> None:
    with pytest.raises(HarnessError, match=r"declares no usd_per_hour for \[tier.cpu\]"):
        declared_price(made.con)
    text = '[tier.cpu]\nusd_per_hour = 0.05\nprice_unit = "core"\nengine_cores = [0, 1]\n'
    change(made, f"UPDATE recording SET experiment_toml = '{text}'")
    assert declared_price(made.con) == Price(0.05, "core", 2)
