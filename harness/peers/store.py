"""Writes a benchmark's file: rows as they come, so that what was measured survives a break-off."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from harness.errors import HarnessError
from harness.recording.store import BLOCK_BYTES, SCHEMA_VERSION

SCHEMA = Path(__file__).with_name("schema.sql")
PAGE = "91"  # of episodes/index.toml
QUANTILES = (50, 90, 99, 99.9, 100)


class Store:
    """A new file at path. Raises HarnessError where there is one."""

    def __init__(self, path: Path, tier: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            raise HarnessError(f"{path}: is there already; name another file")
        self.path, self._draft = path, path.with_suffix(".partial.duckdb")
        self._draft.unlink(missing_ok=True)
        self._db = duckdb.connect(str(self._draft))
        self._db.execute(SCHEMA.read_text(encoding="utf-8"))
        now = datetime.now(UTC)
        self.insert("recording", SCHEMA_VERSION, path.stem, PAGE, tier, now, None)

    def insert(self, table: str, *row: Any) -> None:
        """A row, in the order of the table's columns."""
        self._db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", list(row))

    def errors(self, run_id: int, measure: str, errors_ns: np.ndarray) -> None:
        """The quantiles of a run's errors; nothing where there are none."""
        if len(errors_ns):
            values = np.percentile(errors_ns, QUANTILES) / 1e6
            self.insert("error", run_id, measure, len(errors_ns), *map(float, values))

    def show(self, run_id: int) -> float | None:
        """Prints a run's line; returns its p99 error of gaps, or of mean gaps, in ms; None where
        there is neither."""
        run = self._db.execute(
            "SELECT tool, chunk_rate_per_s, seen_per_s, fault,"
            " 1e6 * (cpu_s + parse_cpu_s) / chunks FROM bench_run WHERE run_id = ?",
            [run_id],
        ).fetchall()[0]
        tool, rate, seen, fault, cpu = run
        found = self._db.execute(
            "SELECT measure, p50_ms, p99_ms FROM error WHERE run_id = ?", [run_id]
        ).fetchall()
        errors = {measure: (p50, p99) for measure, p50, p99 in found}
        gaps = errors.get("gap") or errors.get("mean_gap")
        told = [f"{p50:8.3f} {p99:9.3f}" for p50, p99 in filter(None, (errors.get("ttft"), gaps))]
        figures = f"{seen or 0:9,.0f}  {'  '.join(told):38}{cpu or 0:8.0f}" if told else ""
        star = "" if "gap" in errors or not told else " (mean gap of each request)"
        print(f"{tool:22}{rate:9,.0f}{figures}{star} {fault or ''}", flush=True)
        return gaps[1] if gaps else None

    def close(self) -> None:
        """Marks the file finished and writes it compactly, without `.partial`."""
        self._db.execute("UPDATE recording SET finished_at = ?", [datetime.now(UTC)])
        ((name,),) = self._db.execute("SELECT current_database()").fetchall()
        quoted = str(self.path).replace("'", "''")
        self._db.execute(f"ATTACH '{quoted}' AS final (BLOCK_SIZE {BLOCK_BYTES})")
        self._db.execute(f'COPY FROM DATABASE "{name}" TO final')
        self._db.execute("CHECKPOINT final")
        self._db.execute("DETACH final")
        self._db.close()
        self._draft.unlink()


def free_path(root: Path, tier: str) -> Path:
    """data/peers/<date>-<tier>.duckdb, with a counter where that is taken."""
    stem = f"{datetime.now(UTC):%Y-%m-%d}-{tier}"
    names = (stem, *(f"{stem}-{count}" for count in range(2, 1000)))
    paths = (root / "data" / "peers" / f"{name}.duckdb" for name in names)
    return next(path for path in paths if not path.exists())
