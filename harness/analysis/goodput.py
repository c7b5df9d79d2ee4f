"""Goodput: how many requests met every bound of a service-level objective (SLO).

A failed request met none and stays in the denominator, and so does one that has no value of a
bounded metric, such as TPOT where all tokens came at once: an empty answer is no fast one. INVALID
cells are left out. ITL has many values a request: its largest (itl_max) or its own p99 (itl_p99) is
what is bounded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb

from harness.analysis.cells import Cells, Row, select
from harness.analysis.metrics import metric
from harness.errors import HarnessError

Slo = Mapping[str, float]  # the highest value allowed, in ms, by the name of the metric


@dataclass(frozen=True, slots=True)
class Met:
    """One cell: requests sent, failed, that met each bound alone and that met all of them."""

    cell_id: int
    requests: int
    failed: int
    output_tokens: int
    measured_s: float
    met_each: dict[str, int] = field(hash=False)
    met: int

    @property
    def met_frac(self) -> float:
        return self.met / self.requests


@dataclass(frozen=True, slots=True)
class Goodput:
    """One variant at one level, one `Met` a repeat."""

    variant: str
    level: dict[str, Any] = field(hash=False)
    repeats: tuple[Met, ...]

    @property
    def requests(self) -> int:
        return sum(each.requests for each in self.repeats)

    @property
    def failed(self) -> int:
        return sum(each.failed for each in self.repeats)

    @property
    def met(self) -> int:
        return sum(each.met for each in self.repeats)

    @property
    def met_frac(self) -> float:
        return self.met / self.requests

    @property
    def met_per_s(self) -> float:
        """Requests that met the SLO a second of the measured phases."""
        return self.met / sum(each.measured_s for each in self.repeats)

    def met_each_frac(self, name: str) -> float:
        return sum(each.met_each[name] for each in self.repeats) / self.requests


def goodput(con: duckdb.DuckDBPyConnection, cells: Cells, slo: Slo) -> list[Goodput]:
    """By variant and level. Raises HarnessError for a metric that is not one value a request,
    and where no VALID cell fits."""
    rows = [row for row in select(con, cells) if row.verdict == "VALID"]
    if not rows:
        raise HarnessError(f"no VALID cell fits {cells}")
    met = _met(con, rows, slo)
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.variant, repr(row.level)), []).append(row)
    found = [
        Goodput(group[0].variant, group[0].level, tuple(met[row.cell_id] for row in group))
        for group in groups.values()
    ]
    return sorted(found, key=_by_level)


def _by_level(each: Goodput) -> tuple[Any, ...]:
    numbers = [value or 0 for value in each.level.values() if not isinstance(value, str)]
    return (*numbers, each.variant)


def _met(con: duckdb.DuckDBPyConnection, rows: list[Row], slo: Slo) -> dict[int, Met]:
    """By cell. A bound holds for a value that is there and not above it."""
    held = [f"(r.error IS NULL AND coalesce(m{n}.value <= ?, false))" for n in range(len(slo))]
    joins = " ".join(
        f"LEFT JOIN ({metric(name, ('request',)).sql}) m{n} USING (cell_id, request_id)"
        for n, name in enumerate(slo)
    )
    counts = "".join(f", count(*) FILTER ({each})" for each in held)
    everything = " AND ".join(held) or "r.error IS NULL"
    ids = ", ".join(str(row.cell_id) for row in rows)
    found = con.execute(
        "SELECT cell_id, count(*), count(r.error),"
        " coalesce(sum(r.output_tokens) FILTER (r.error IS NULL), 0)::BIGINT,"
        f" any_value(o.measured_s){counts}, count(*) FILTER ({everything})"
        f" FROM request r JOIN outcome o USING (cell_id) {joins}"
        f" WHERE r.phase = 'measured' AND cell_id IN ({ids}) GROUP BY cell_id",
        [*slo.values(), *slo.values()],
    ).fetchall()
    return {
        cell_id: Met(cell_id, sent, failed, tokens, seconds, dict(zip(slo, each, strict=True)), met)
        for cell_id, sent, failed, tokens, seconds, *each, met in found
    }
