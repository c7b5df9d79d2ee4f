"""Checks on the load: did the client send what was planned, and could it see what came back?"""

import math

from harness.recording.judged import Judged
from harness.statistics import drift, window_levels

LAG_MS = 5.0  # p99 of how late requests may leave, where
LAG_TTFT_FRAC = 0.01  # that is more than this share of the median TTFT
CEILING_FRAC = 0.8  # of the client's calibrated ceiling
CLIENT_BUSY_FRAC = 0.8  # of its core: above this, lateness of the client shows in the figures
SHARED_READS_FRAC = 0.01  # of chunks: their times are upper bounds only
MIN_SHARED = 5  # of chunks, below which they may be one hiccup
SHARED_LAG_MS = 1.0  # a client that reads sooner than this did not make them wait
RATE_FRAC = 0.05  # by which the rate of arrivals may miss the rate asked for
Z = 3.3  # standard errors: chance passes them once in a thousand cells
SCATTER = 0.1  # by which the squared coefficient of variation may miss, relative to the larger of 1
TIMES = ("sent_ns", "scheduled_ns")
MIN_GAPS = 20  # between arrivals, below which their scatter says nothing
IN_FLIGHT_FRAC = 0.9  # of the requests in flight that a closed loop asks for, by the client
SEEN_FRAC = 0.75  # of them, by the engine's gauges, which some engines renew every 40 steps
MIN_SEEN = 4  # in flight, below which a gauge that is old misses them all
MIN_LOOKS = 5  # at the engine's gauges, below which their maximum says nothing
MIN_WINDOW_REQUESTS = 5  # in each window of the drift test: it needs 30 requests at least


def schedule_lag(cell: Judged) -> str | None:
    """Open loop: late by more than 5 ms and by more than 1 % of the median TTFT. Left out: a cap in
    front of the server, which is there to make requests wait."""
    if not cell.is_open or cell.row["front_cap"]:
        return None
    lag_ms, ttft_ms = cell.ask(
        "SELECT quantile_disc((sent_ns - scheduled_ns) / 1e6, 0.99),"
        " quantile_cont((first_token_ns - sent_ns) / 1e6, 0.5) FROM measured"
    )
    limit_ms = max(LAG_MS, LAG_TTFT_FRAC * (ttft_ms or 0.0))
    if lag_ms is None or lag_ms <= limit_ms:
        return None
    return f"schedule_lag: p99 of sent after scheduled is {lag_ms:.1f} ms, limit {limit_ms:.1f} ms"


def client_ceiling(cell: Judged) -> str | None:
    """Where the client was calibrated on this machine."""
    share = cell.client.get("ceiling_frac") or 0.0
    if share <= CEILING_FRAC:
        return None
    return f"client_ceiling: the load was {share:.0%} of what this client can measure"


def client_busy(cell: Judged) -> str | None:
    share = cell.client.get("cpu_frac") or 0.0
    if share <= CLIENT_BUSY_FRAC:
        return None
    return f"client_busy: a load process used {share:.0%} of its core"


def shared_reads(cell: Judged) -> str | None:
    """Chunks that waited for a late client. One that reads at once finds two together only where
    the server sent them so. The last of an answer is left out: the usage comes with it."""
    lag_ns = cell.client.get("user_lag_p99_ns")
    if lag_ns is not None and lag_ns <= SHARED_LAG_MS * 1e6:
        return None
    chunks, shared = cell.ask(
        "SELECT sum(greatest(len(chunk_shared) - 1, 0)),"
        " sum(len(list_filter(chunk_shared[1:-2], lambda x: x))) FROM measured"
    )
    if not chunks or shared < MIN_SHARED or shared <= SHARED_READS_FRAC * chunks:
        return None
    return f"shared_reads: {shared} of {chunks} chunks were read together with a later one"


def achieved_rate(cell: Judged) -> str | None:
    """As sent within 5 % of the plan, unless a cap in front of the server holds requests back; the
    plan within 5 % of the rate asked for, or within what chance makes of it in so many arrivals."""
    gaps, achieved, planned = cell.ask(
        "SELECT count(*) - 1, (count(*) - 1) * 1e9 / nullif(max(sent_ns) - min(sent_ns), 0),"
        " (count(*) - 1) * 1e9 / nullif(max(scheduled_ns) - min(scheduled_ns), 0) FROM arrival"
    )
    shape = _shape(cell)
    if not cell.is_open or gaps < 1 or not achieved or not planned:
        return None
    if abs(achieved / planned - 1) > RATE_FRAC and not cell.row["front_cap"]:
        return f"achieved_rate: {achieved:.2f} requests a second were sent, {planned:.2f} planned"
    asked = planned if shape is None else cell.row["rate_per_s"]
    allowed = max(RATE_FRAC, Z / math.sqrt(shape * gaps) if shape else 0.0)
    if abs(planned / asked - 1) <= allowed:
        return None
    return (
        f"achieved_rate: {planned:.2f} of {asked:.2f} requests a second were planned, within"
        f" {allowed:.0%} allowed"
    )


def arrival_dispersion(cell: Judged) -> str | None:
    """The times between arrivals scatter as planned (a cap in front of the server bends them by
    intent), and the plan as its process.

    Scatter: variance over squared mean; 1/shape for gamma, 1 for Poisson, 0 for constant. Its
    standard error over n gamma gaps is sqrt((2 + 2/shape) / n) of itself (delta method).
    """
    if not cell.is_open:
        return None
    arrivals, sent, planned = cell.ask(
        "SELECT (SELECT count(*) FROM arrival), " + ", ".join(map(_scatter, TIMES))
    )
    if arrivals <= MIN_GAPS or sent is None or planned is None:
        return None
    if abs(sent - planned) > SCATTER * max(1.0, planned) and not cell.row["front_cap"]:
        return (
            f"arrival_dispersion: gaps scatter by {sent:.2f} as sent, by {planned:.2f} as planned"
        )
    shape = _shape(cell)
    if shape is None:
        return None
    allowed = SCATTER + Z * math.sqrt((2 + 2 / shape) / (arrivals - 1)) / shape
    if abs(planned - 1 / shape) <= allowed:
        return None
    return (
        f"arrival_dispersion: gaps scatter by {planned:.2f}, not by the {1 / shape:.2f} of"
        f" {cell.row['load']} arrivals"
    )


def _shape(cell: Judged) -> float | None:
    """Gamma shape of the times between arrivals, infinite for constant ones; None: a schedule."""
    shapes = {"constant": math.inf, "poisson": 1.0, "gamma": cell.row["burstiness"]}
    return shapes.get(cell.row["load"])


def _scatter(time: str) -> str:
    """SQL: variance over squared mean of the differences between neighbouring times."""
    gaps = f"SELECT {time} - lag({time}) OVER (ORDER BY {time}) AS gap FROM arrival"
    return f"(SELECT var_pop(gap) / nullif(avg(gap), 0) ** 2 FROM ({gaps}))"


def concurrency(cell: Judged) -> str | None:
    """Closed loop, until the last request is sent: what the client held, what the engine saw.

    The engine's gauges are sampled and some engines renew them rarely, so only their highest values
    are used, running and waiting of all its copies added up: an upper bound of what it ever had.
    """
    asked = cell.row["in_flight"]
    sent, sessions, held = cell.ask(
        "SELECT count(*), count(session), sum(greatest(least(ended_ns, last_ns) - sent_ns, 0))"
        " / nullif(any_value(last_ns - first_ns), 0) FROM measured, ends"
    )
    if cell.is_open or sessions or sent <= 2 * asked or held is None:
        return None
    if held < IN_FLIGHT_FRAC * asked:
        return f"concurrency: the client kept {held:.1f} of {asked} requests in flight"
    looks, seen = cell.ask(
        """SELECT (SELECT count(*) FROM scrape, ends
                WHERE cell_id = $cell AND t_ns BETWEEN first_ns AND last_ns),
            (SELECT sum(most) FROM (
                SELECT max(value) AS most FROM engine_gauge
                WHERE cell_id = $cell AND gauge IN ('running', 'waiting')
                GROUP BY gauge, labels))"""
    )
    if looks < MIN_LOOKS or asked < MIN_SEEN or seen is None or seen >= SEEN_FRAC * asked:
        return None
    return f"concurrency: the engine had at most {seen:.0f} of {asked} requests at a time"


def steady_state(cell: Judged) -> str | None:
    """The time of a whole request from its schedule must not drift through the measured phase.

    Left out: loads that change by declaration, and later turns, whose prompts grow.
    """
    if cell.row["load"] in ("stages", "trace"):
        return None
    values = cell.numbers(
        "SELECT (last_token_ns - scheduled_ns) / 1e6 FROM arrival"
        " WHERE error IS NULL ORDER BY scheduled_ns, request_id"
    )
    least = max(MIN_WINDOW_REQUESTS, cell.row["in_flight"] or 1)
    levels = window_levels(values, least)
    found = drift(levels)
    if found is None or found.steady:
        return None
    return (
        f"steady_state: requests took {levels[0]:.0f} ms in the first and {levels[-1]:.0f} ms in"
        f" the last of {len(levels)} windows (p = {found.p:.4f})"
    )
