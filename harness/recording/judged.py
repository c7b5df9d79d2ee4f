"""A cell under judgement: its row, and questions to its other rows."""

from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

MEASURED = """
WITH measured AS NOT MATERIALIZED (
    SELECT * FROM request WHERE cell_id = $cell AND phase = 'measured'),
arrival AS NOT MATERIALIZED (
    SELECT * FROM measured WHERE sent_ns IS NOT NULL AND coalesce(turn, 1) = 1),
ends AS (SELECT min(sent_ns) AS first_ns, max(sent_ns) AS last_ns FROM measured)
"""


@dataclass(frozen=True, slots=True)
class Judged:
    """row: of table cell, with the fault of its engine run. client: its JSON, read."""

    con: duckdb.DuckDBPyConnection
    row: dict[str, Any]
    client: dict[str, Any]

    def ask(self, sql: str) -> tuple[Any, ...]:
        """The one row of a query. It knows the cell's `measured` requests, their `arrival` (first
        turns that were sent), and when the first and the last was sent (`ends`)."""
        (row,) = self.rows(sql)
        return row

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.con.execute(MEASURED + sql, {"cell": self.row["cell_id"]}).fetchall()

    def numbers(self, sql: str) -> list[float]:
        """The one column of a query, of any length."""
        found = self.con.execute(MEASURED + sql, {"cell": self.row["cell_id"]}).fetchnumpy()
        numbers: list[float] = np.asarray(next(iter(found.values())), dtype=float).tolist()
        return numbers

    @property
    def is_open(self) -> bool:
        return bool(self.row["load"] != "closed")
