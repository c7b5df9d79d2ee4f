"""What a million output tokens cost, and a request that met its SLO, at a declared price an hour.

Each figure is given twice, for two ways to attribute time. `measured`: the measured phases alone.
`held`: all the time from the engine's start to its stop, so with start-up, warm-up and idle; where
one engine run served several cells, each bears it in proportion to its measured phase.
"""

import tomllib
from dataclasses import dataclass

import duckdb

from harness.analysis.cells import Cells
from harness.analysis.goodput import Goodput, Slo, goodput
from harness.errors import HarnessError

HELD = """
WITH run AS (
    SELECT run_id, sum(ended_ns - measured_ns) AS measured_ns,
        coalesce(max(e.stopped_ns), max(ended_ns)) - min(e.started_ns) AS held_ns,
        len(any_value(e.cores)) AS cores
    FROM cell c JOIN engine_run e USING (run_id) GROUP BY run_id)
SELECT cell_id, (c.ended_ns - c.measured_ns) / run.measured_ns * held_ns / 1e9, cores
FROM (SELECT cell_id, run_id, measured_ns, ended_ns FROM cell) c JOIN run USING (run_id)
"""


@dataclass(frozen=True, slots=True)
class Price:
    """As the recorded experiment declares it: for one unit (core or gpu), and how many it used; a
    variant with cores of its own, as many as those."""

    usd_per_hour: float
    unit: str
    units: int


@dataclass(frozen=True, slots=True)
class Cost:
    """measured_s, held_s: seconds attributed. met: requests that met the SLO."""

    goodput: Goodput
    output_tokens: int
    met: int
    measured_s: float
    held_s: float
    usd_per_s: float

    def usd_per_million_tokens(self, seconds: float) -> float | None:
        """For measured_s or held_s; None where there was no token."""
        return self._usd(seconds, self.output_tokens, 1e6)

    def usd_per_thousand_met(self, seconds: float) -> float | None:
        """For measured_s or held_s; None where no request met the SLO: no price buys one."""
        return self._usd(seconds, self.met, 1e3)

    def _usd(self, seconds: float, count: int, of: float) -> float | None:
        return seconds * self.usd_per_s / count * of if count else None


def declared_price(con: duckdb.DuckDBPyConnection) -> Price:
    """Of the recorded tier. Raises HarnessError where the declaration names no price."""
    ((tier, text),) = con.execute("SELECT tier, experiment_toml FROM recording").fetchall()
    declared = tomllib.loads(text).get("tier", {}).get(tier, {})
    if "usd_per_hour" not in declared:
        raise HarnessError(f"the recorded experiment declares no usd_per_hour for [tier.{tier}]")
    unit = declared["price_unit"]
    units = len(declared["engine_cores"]) if unit == "core" else 1
    return Price(declared["usd_per_hour"], unit, max(1, units))


def cost(con: duckdb.DuckDBPyConnection, cells: Cells, slo: Slo, price: Price) -> list[Cost]:
    """By variant and level, over the VALID cells."""
    held = {cell_id: (seconds, cores) for cell_id, seconds, cores in con.execute(HELD).fetchall()}

    def units(cell_id: int) -> int:
        return held[cell_id][1] or price.units if price.unit == "core" else price.units

    return [
        Cost(
            each,
            sum(met.output_tokens for met in each.repeats),
            each.met,
            sum(met.measured_s for met in each.repeats),
            sum(held[met.cell_id][0] for met in each.repeats),
            price.usd_per_hour * units(each.repeats[0].cell_id) / 3600,
        )
        for each in goodput(con, cells, slo)
    ]
