from array import array
from typing import Any

import pytest

from harness.load.plan import LoadPlan
from harness.load.summary import merge


def part(started_ns: int, ended_ns: int, requests: int, lags_ns: list[int]) -> dict[str, Any]:
    return {
        "started_ns": started_ns,
        "measured_ns": 1_000,
        "ended_ns": ended_ns,
        "requests": requests,
        "scheduled": False,
        "cpu_s": 0.25,
        "cpu_frac": ended_ns / 10_000,
        "lags_ns": array("q", lags_ns),
        "locust_cpu_warning": ended_ns > 6_000,
        "realtime_priority": started_ns > 10,
    }


def plan(min_requests: int, min_duration_s: float) -> LoadPlan:
    return LoadPlan("http://127.0.0.1:1/", 2, min_requests, min_duration_s, 1.0, (), "/tmp/spool")


def test_the_summary_of_two_processes() -> None:
    parts = [part(10, 5_000, 3, [30, 10, 50]), part(20, 7_000, 1, [40])]
    parts[1]["clock"] = {"offset_ns": 7}
    got = merge(plan(4, 6e-6), parts)
    assert (got["started_ns"], got["measured_ns"], got["ended_ns"]) == (10, 1_000, 7_000)
    assert (got["requests"], got["cpu_s"], got["cpu_frac"]) == (4, 0.5, 0.7)
    lags = [got[f"schedule_lag_{name}_ns"] for name in ("p50", "p99", "max")]
    assert lags == [30, 50, 50]
    assert (got["locust_cpu_warning"], got["realtime_priority"]) == (True, False)
    assert got["processes"] == [
        {"requests": 3, "cpu_s": 0.25, "cpu_frac": 0.5},
        {"requests": 1, "cpu_s": 0.25, "cpu_frac": 0.7, "clock": {"offset_ns": 7}},
    ]


@pytest.mark.parametrize(
    ("min_requests", "min_duration_s", "scheduled", "met"),
    [(4, 6e-6, False, True), (5, 6e-6, False, False), (4, 7e-6, False, False), (5, 9, True, True)],
)
def test_minimums(min_requests: int, min_duration_s: float, scheduled: bool, met: bool) -> None:
    parts = [part(10, 5_000, 3, []), part(20, 7_000, 1, [])]
    parts[0]["scheduled"] = scheduled
    got = merge(plan(min_requests, min_duration_s), parts)
    assert got["minimums_met"] is met
    assert got["schedule_lag_p99_ns"] is None
