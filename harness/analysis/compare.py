"""One metric of two choices of cells as a ratio, with its interval and a verdict.

In each repeat the requests of both sides are paired by prompt; the statistic of each side is taken
over the paired requests, and the logarithm of their ratio is the repeat's one value. The ratio is
the geometric mean over repeats (and over levels, where the choice spans several), its interval that
of intervals.py. The repeat is the unit: requests of one repeat share an engine process.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log

import duckdb

from harness.analysis.cells import KEYS, LEVEL, Cells, place
from harness.analysis.equal_work import Check, Pair, paired_sql, prove
from harness.analysis.intervals import MIN_REPEATS, bootstrap_t
from harness.analysis.metrics import Metric, metric
from harness.errors import HarnessError
from harness.statistics import samples_needed, supported_percentile

NOT_COMPARABLE = "not comparable"
VALUES = """, value AS ({sql})
SELECT n, {statistic} FILTER (side = 'a'), {statistic} FILTER (side = 'b'),
    count(value) FILTER (side = 'a'), count(value) FILTER (side = 'b')
FROM (
    SELECT n, 'a' AS side, value FROM paired JOIN value
        ON value.cell_id = a_cell AND value.request_id = a_request
    UNION ALL SELECT n, 'b', value FROM paired JOIN value
        ON value.cell_id = b_cell AND value.request_id = b_request)
GROUP BY n ORDER BY n
"""
CELL_VALUES = """, value AS ({sql})
SELECT n, a.value, b.value, 1, 1
FROM pair JOIN value a ON a.cell_id = a_cell JOIN value b ON b.cell_id = b_cell ORDER BY n
"""


@dataclass(frozen=True, slots=True)
class Ratio:
    """The values of one repeat at one level, and how many requests (or tokens) each rests on."""

    place: str
    samples: int
    a: float
    b: float

    @property
    def ratio(self) -> float:
        return self.a / self.b


@dataclass(frozen=True, slots=True)
class Comparison:
    """verdict: better, worse or tie, of a; or not comparable, and `why`. ratio: a / b; low and
    high: the ends of its 95 % interval; None where not comparable."""

    verdict: str
    sentence: str
    what: str
    a: str
    b: str
    unit: str
    ratio: float | None
    low: float | None
    high: float | None
    ratios: tuple[Ratio, ...]
    checks: tuple[Check, ...]
    why: str = ""

    @property
    def brief(self) -> str:
        """For a table: "0.70 [0.62, 0.78], better", or why not."""
        if self.ratio is None or self.low is None or self.high is None:
            return f"{self.verdict}: {self.why}"
        ratio, low, high = _numbers(self.ratio, self.low, self.high)
        return f"{ratio} [{low}, {high}], {self.verdict}"


def compare(
    con: duckdb.DuckDBPyConnection, a: Cells, b: Cells, name: str, statistic: str = "p50"
) -> Comparison:
    """a against b. A level that one side names holds for the other too, unless it names its own.

    statistic: mean, or a percentile such as p90; a metric with one value a cell takes none. Raises
    HarnessError for an unknown metric, statistic or key, and where a choice fits no cell.
    """
    chosen = metric(name)
    q = _percentile(statistic)
    what = chosen.said if chosen.per == "cell" else f"{chosen.said} {statistic}"
    a, b = _told_apart(_inherit(a, b), _inherit(b, a))
    proof = prove(con, a, b)
    if proof.inequality:
        return _refuse(what, chosen, a, b, proof.inequality, proof.checks)
    ratios = _ratios(con, proof.pairs, chosen, q)
    why = _too_few(ratios, proof.pairs, chosen, q, statistic)
    if why:
        return _refuse(what, chosen, a, b, why, proof.checks, ratios)
    middle, low, high = _interval(ratios, proof.pairs)
    if high == inf or low == 0:
        why = "too few repeats differ for an interval"
        return _refuse(what, chosen, a, b, why, proof.checks, ratios)
    verdict = _verdict(low, high, chosen)
    ratio, *ends = _numbers(middle, low, high)
    sentence = (
        f"{_capital(what)} of {a.name} is {ratio} times that of {b.name} [{', '.join(ends)}]"
        f"{_over(proof.pairs)}: {'a tie' if verdict == 'tie' else verdict}."
    ) + "".join(
        f" Repeat {n} is left out: a cell is INVALID or of another session." for n in proof.left_out
    )
    return Comparison(
        verdict, sentence, what, a.name, b.name, chosen.unit, middle, low, high, ratios,
        proof.checks,
    )  # fmt: skip


def _inherit(side: Cells, other: Cells) -> Cells:
    level = {key: value for key, value in other.keys.items() if key in LEVEL}
    return Cells(level | dict(side.keys), side.said)


def _told_apart(a: Cells, b: Cells) -> tuple[Cells, Cells]:
    """Two sides of one name get the level in which they differ added to it."""
    if a.name != b.name:
        return a, b
    differ = [key for key in KEYS if a.keys.get(key) != b.keys.get(key)]
    first, second = (
        Cells(side.keys, f"{side.name} ({place({key: side.keys.get(key) for key in differ})})")
        for side in (a, b)
    )
    return first, second


def _percentile(statistic: str) -> float | None:
    """50.0 for p50; None for the mean."""
    if statistic == "mean":
        return None
    try:
        q = float(statistic.removeprefix("p"))
    except ValueError:
        q = 0.0
    if not (statistic.startswith("p") and 0 < q < 100):
        raise HarnessError(f"statistic {statistic!r}: say mean, or a percentile such as p50 or p99")
    return q


def _ratios(
    con: duckdb.DuckDBPyConnection, pairs: Sequence[Pair], chosen: Metric, q: float | None
) -> tuple[Ratio, ...]:
    sql = CELL_VALUES if chosen.per == "cell" else VALUES
    statistic = "avg(value)" if q is None else f"quantile_cont(value, {q / 100})"
    found = con.execute(
        paired_sql(pairs) + sql.format(sql=chosen.sql, statistic=statistic)
    ).fetchall()
    return tuple(
        Ratio(pairs[n].place, min(n_a, n_b), value_a, value_b)
        for n, value_a, value_b, n_a, n_b in found
    )


def _too_few(
    ratios: Sequence[Ratio],
    pairs: Sequence[Pair],
    chosen: Metric,
    q: float | None,
    statistic: str,
) -> str | None:
    """Why no ratio can be given although the work was equal."""
    repeats = len({pair.repeat for pair in pairs})
    if repeats < MIN_REPEATS:
        return f"{repeats} repeats; an interval takes at least {MIN_REPEATS}"
    if len(ratios) < len(pairs):
        return f"a cell has no {chosen.said}"
    empty = next((each for each in ratios if not each.a or not each.b), None)
    if empty is not None:
        return f"{chosen.said} is zero or unknown in {empty.place}"
    if q is None or chosen.per == "cell":
        return None
    # A tail is each repeat's own; the middle of few repeats is bounded by all of them together.
    samples: dict[str, int] = {}
    for pair, each in zip(pairs, ratios, strict=True):
        where = place(pair.level) if q <= 50 else each.place
        samples[where] = samples.get(where, 0) + each.samples
    fewest = min(samples.values())
    if fewest < samples_needed(q):
        supported = supported_percentile(fewest)
        hold = "the repeats hold" if q <= 50 else "a repeat holds"
        return f"{statistic} needs {samples_needed(q)} values and {hold} {fewest}, " + (
            f"which support p{supported:g}" if supported else "which support no percentile"
        )
    return None


def _interval(ratios: Sequence[Ratio], pairs: Sequence[Pair]) -> tuple[float, float, float]:
    """The geometric mean of the ratios and its interval over repeats."""
    logs: dict[int, list[float]] = {}
    for pair, each in zip(pairs, ratios, strict=True):
        logs.setdefault(pair.repeat, []).append(log(each.ratio))
    means = [sum(values) / len(values) for values in logs.values()]
    low, high = bootstrap_t(means)
    return exp(sum(means) / len(means)), exp(low), exp(high)


def _over(pairs: Sequence[Pair]) -> str:
    levels = len({place(pair.level) for pair in pairs})
    return f", geometric mean of {levels} levels" if levels > 1 else ""


def _verdict(low: float, high: float, chosen: Metric) -> str:
    if low <= 1 <= high:
        return "tie"
    return "better" if (high < 1) == (chosen.better == "less") else "worse"


def _refuse(
    what: str,
    chosen: Metric,
    a: Cells,
    b: Cells,
    why: str,
    checks: tuple[Check, ...],
    ratios: tuple[Ratio, ...] = (),
) -> Comparison:
    sentence = f"{_capital(what)} of {a.name} and {b.name}: not comparable, because {why}."
    return Comparison(
        NOT_COMPARABLE, sentence, what, a.name, b.name, chosen.unit, None, None, None, ratios,
        checks, why,
    )  # fmt: skip


def _numbers(middle: float, low: float, high: float) -> list[str]:
    """Two decimals, or as many as it takes to tell an interval's end from 1, or a small ratio
    from 0; at most five."""
    for decimals in range(2, 6):
        said = [f"{each:.{decimals}f}" for each in (middle, low, high)]
        clear = all(
            float(text) != 1 or each == 1 for text, each in zip(said[1:], (low, high), strict=True)
        )
        if clear and float(said[1]) * 10**decimals >= 5:
            break
    return said


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
