"""Was the load the one that was declared, and who waited for whom? Rows 8 to 10, 15, 18 and 19."""

import pytest

from tests.failure_modes.conftest import Recorded


def names(recorded: Recorded, variant: str) -> set[str]:
    ((found,),) = recorded(variant).execute("SELECT reasons FROM cell").fetchall()
    return {reason.partition(":")[0] for reason in found}


def test_08_a_cap_on_connections_hides_queueing(recorded: Recorded) -> None:
    """Due every 50 ms over one connection that is busy for 94: the k-th waits 44 ms more each.

    From the sent time all is well; the scheduled time shows it, and the cell is refused.
    """
    rows = recorded("one_connection").execute(
        "SELECT (first_token_ns - sent_ns) / 1e6, (first_token_ns - scheduled_ns) / 1e6"
        " FROM request WHERE phase = 'measured' ORDER BY request_id"
    )
    sent_ms, scheduled_ms = zip(*rows.fetchall(), strict=True)
    assert len(sent_ms) == 12
    assert scheduled_ms[-1] > 80 + 11 * 44 - 1
    assert scheduled_ms[-1] - sent_ms[-1] > 11 * 44 - 1
    assert {"schedule_lag", "achieved_rate"} <= names(recorded, "one_connection")


def test_09_the_offered_rate_is_not_the_one_configured(recorded: Recorded) -> None:
    """What was sent is held against the plan, and the plan against its process."""
    con = recorded("plain")
    ((planned, sent),) = con.execute(
        "SELECT count(*), count(sent_ns) FROM request WHERE phase = 'measured'"
    ).fetchall()
    assert planned == sent >= 100
    assert not {"achieved_rate", "arrival_dispersion"} & names(recorded, "plain")
    assert "achieved_rate" in names(recorded, "one_connection")


def test_10_the_concurrency_asked_for_is_not_reached(recorded: Recorded) -> None:
    """A proxy lets two of six through: the client can't tell, the engine's own gauge can."""
    ((reasons,),) = recorded("queue_in_front").execute("SELECT reasons FROM cell").fetchall()
    assert "concurrency: the engine had at most 2 of 6 requests at a time" in reasons


def test_15_waiting_outside_the_engine_is_taken_for_prefill(recorded: Recorded) -> None:
    """60 ms before the engine and 20 ms in it: TTFT has both, the engine's account its own only."""
    con = recorded("slow_front")
    ((ttft_ms,),) = con.execute("SELECT min(from_sent_ms) FROM ttft").fetchall()
    ((prefill_ms,),) = con.execute(
        "SELECT 1000 * total_s / requests FROM engine_stage WHERE stage = 'prefill'"
    ).fetchall()
    assert ttft_ms >= 79
    assert 19 <= prefill_ms < 60
    machine, client = con.execute(
        "SELECT machine, client FROM session JOIN cell USING (session_id)"
    ).fetchall()[0]
    assert '"governor"' in machine and '"cpu_frac"' in client


def test_18_cold_outliers_make_the_mean_fall_as_load_rises(recorded: Recorded) -> None:
    """A probe and two requests take 400 ms more. They are warm-up, and levels are medians."""
    con = recorded("first_is_cold")
    ((all_ms, measured_ms),) = con.execute(
        "SELECT avg((first_token_ns - sent_ns) / 1e6), "
        "avg((first_token_ns - sent_ns) / 1e6) FILTER (phase = 'measured') FROM request"
    ).fetchall()
    ((p50_ms,),) = con.execute("SELECT p50_ms FROM ttft_p50").fetchall()
    assert all_ms > measured_ms + 2 * 400 / 10 - 20
    assert p50_ms == pytest.approx(20, abs=10)


def test_19_ramp_up_pollutes_averages(recorded: Recorded) -> None:
    """Each request takes a millisecond longer than the one before: there is no level to average."""
    assert "steady_state" in names(recorded, "drifting")
