"""What a cell's client did, from what each of its load processes did."""

import math
from array import array
from typing import Any

from harness.load.plan import LoadPlan


def merge(plan: LoadPlan, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """One summary of all load processes, whose times are on one clock.

    Lags are pooled, CPU seconds added; cpu_frac is that of the busiest process. processes: the
    figures of each. minimums_met: a closed loop did at least what was asked, or every request that
    had a due time was sent.
    """
    measured_ns = min(part["measured_ns"] for part in parts)
    ended_ns = max(part["ended_ns"] for part in parts)
    done = sum(part["requests"] for part in parts)
    lags_ns = array("q")
    for part in parts:
        lags_ns.extend(part["lags_ns"])
    own = ("requests", "cpu_s", "cpu_frac", "clock")
    scheduled = any(part["scheduled"] for part in parts)
    long_enough = ended_ns - measured_ns >= plan.min_duration_s * 1e9
    return {
        "started_ns": min(part["started_ns"] for part in parts),
        "measured_ns": measured_ns,
        "ended_ns": ended_ns,
        "requests": done,
        "cpu_s": sum(part["cpu_s"] for part in parts),
        "cpu_frac": max(part["cpu_frac"] for part in parts),
        **_lag_summary(lags_ns),
        "locust_cpu_warning": any(part["locust_cpu_warning"] for part in parts),
        "realtime_priority": all(part["realtime_priority"] for part in parts),
        "minimums_met": scheduled or (done >= plan.min_requests and long_enough),
        "processes": [{name: part[name] for name in own if name in part} for part in parts],
    }


def _lag_summary(lags_ns: array) -> dict[str, int | None]:
    """Nearest-rank percentiles of sent minus scheduled; None where nothing was sent."""
    ranks = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    ordered = sorted(lags_ns)
    return {
        f"schedule_lag_{name}_ns": ordered[math.ceil(share * len(ordered)) - 1] if ordered else None
        for name, share in ranks.items()
    }
