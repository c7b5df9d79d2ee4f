"""The metrics that can be compared or bounded: their names, units, direction and view."""

from dataclasses import dataclass

from harness.errors import HarnessError


@dataclass(frozen=True, slots=True)
class Metric:
    """sql gives (cell_id, request_id, value) rows, request_id NULL where it is one value a cell.

    better: whether less or more of it is better. per: what has one value: request, token or cell.
    """

    name: str
    said: str
    unit: str
    sql: str
    per: str = "request"
    better: str = "less"


def _request(name: str, said: str) -> Metric:
    sql = (
        f"SELECT cell_id, request_id, value_ms AS value FROM request_metric WHERE metric = '{name}'"
    )
    return Metric(name, said, "ms", sql)


def _answer(name: str, column: str, said: str) -> Metric:
    return Metric(name, said, "ms", f"SELECT cell_id, request_id, {column} AS value FROM ttft")


def _gap(name: str, column: str, said: str) -> Metric:
    sql = f"SELECT cell_id, request_id, {column} AS value FROM {name}"
    return Metric(name, said, "ms", sql, per="token")


def _of_all(name: str, column: str, reduction: str, sql: str, said: str) -> Metric:
    """One value a request out of its many."""
    values = f"SELECT cell_id, request_id, {sql.format(column)} AS value FROM {name} GROUP BY ALL"
    return Metric(f"{name}_{reduction}", said, "ms", values)


def _cell(name: str, said: str, unit: str) -> Metric:
    sql = f"SELECT cell_id, NULL AS request_id, {name} AS value FROM outcome"
    return Metric(name, said, unit, sql, per="cell", better="more")


MAX = "max({})"
P99 = "quantile_disc({}, 0.99)"  # 99 % of the request's own values are at most this
METRICS = {
    metric.name: metric
    for metric in (
        _request("ttft", "TTFT"),
        _request("ttft_from_scheduled", "TTFT from the scheduled time"),
        _answer("ttft_answer", "answer_from_sent_ms", "TTFT of the answer"),
        _answer(
            "ttft_answer_from_scheduled",
            "answer_from_scheduled_ms",
            "TTFT of the answer from the scheduled time",
        ),
        _request("tpot", "TPOT"),
        _request("e2e", "E2E latency"),
        _request("e2e_from_scheduled", "E2E latency from the scheduled time"),
        _gap("itl", "itl_ms", "ITL"),
        _gap("inter_chunk", "gap_ms", "inter-chunk latency"),
        _of_all("itl", "itl_ms", "max", MAX, "largest ITL of a request"),
        _of_all("itl", "itl_ms", "p99", P99, "p99 ITL of a request"),
        _of_all("inter_chunk", "gap_ms", "max", MAX, "largest inter-chunk latency of a request"),
        _of_all("inter_chunk", "gap_ms", "p99", P99, "p99 inter-chunk latency of a request"),
        _cell("output_tok_per_s", "output throughput", "tok/s"),
        _cell("requests_per_s", "request throughput", "requests/s"),
    )
}


def metric(name: str, per: tuple[str, ...] = ("request", "token", "cell")) -> Metric:
    """Raises HarnessError naming the metric, why it can't be taken, and those that can."""
    known = ", ".join(each.name for each in METRICS.values() if each.per in per)
    found = METRICS.get(name)
    if found is None:
        raise HarnessError(f"metric {name!r} is not recorded; known: {known}")
    if found.per not in per:
        many = f"many values a request: take {name}_max or {name}_p99"
        why = many if found.per == "token" else f"one value a {found.per}"
        raise HarnessError(f"metric {name!r} has {why}; known: {known}")
    return found
