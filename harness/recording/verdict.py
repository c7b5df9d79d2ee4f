"""VALID or INVALID, with named reasons: whether a cell may enter a metric.

A verdict is a function of the recorded rows alone, so that any recording can be judged again
(`harness check --rejudge`). Each check gives one reason, "name: its figures", or None. An INVALID
cell is kept in the recording and shown on a page; it never enters a comparison.
"""

import json
from collections.abc import Callable

import duckdb

from harness.recording import checks_load, checks_machine, checks_work
from harness.recording.judged import Judged

CHECKS: tuple[Callable[[Judged], str | None], ...] = (
    checks_work.errors,
    checks_work.prompt_length,
    checks_work.output_length,
    checks_work.warm_cache,
    checks_work.minimums,
    checks_load.schedule_lag,
    checks_load.client_ceiling,
    checks_load.client_busy,
    checks_load.shared_reads,
    checks_load.achieved_rate,
    checks_load.arrival_dispersion,
    checks_load.concurrency,
    checks_load.steady_state,
    checks_work.engine_restarted,
    checks_machine.gpu_clock,
    checks_machine.cpu_steal,
    checks_machine.telemetry,
    checks_work.run_fault,
)
CELL = "SELECT c.*, e.fault FROM cell c JOIN engine_run e USING (run_id) WHERE c.cell_id = $cell"


def judge(con: duckdb.DuckDBPyConnection, cell_id: int) -> list[str]:
    """The reasons against a cell; empty where it is VALID."""
    cursor = con.execute(CELL, {"cell": cell_id})
    names = [column[0] for column in cursor.description or ()]
    (values,) = cursor.fetchall()
    row = dict(zip(names, values, strict=True))
    cell = Judged(con, row, json.loads(row["client"]))
    return [reason for check in CHECKS if (reason := check(cell)) is not None]


def pronounce(con: duckdb.DuckDBPyConnection, cell_id: int) -> list[str]:
    """Judges a cell and writes its verdict into its row; returns the reasons against it."""
    reasons = judge(con, cell_id)
    con.execute(
        "UPDATE cell SET verdict = ?, reasons = ? WHERE cell_id = ?",
        ["INVALID" if reasons else "VALID", reasons, cell_id],
    )
    return reasons
