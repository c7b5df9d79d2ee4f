"""Opens, writes and finishes a recording: one DuckDB file.

Rows are read with fetchall: a result that is not read to its end blocks the next transaction.

A cell is one transaction, so that a harness killed at any moment leaves every finished cell and
no part of another. While cells are missing the file is NAME.partial.duckdb; when the last one is
in, it is rewritten compactly as NAME.duckdb.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from harness.errors import HarnessError

SCHEMA_VERSION = 4
BLOCK_BYTES = 32_768  # smaller ones can't hold a bit-packed group (DuckDB 2.0), larger ones waste
# While writing: a transaction of any length then needs 450 MB with all of Python (200,000 requests
# of 128 chunks were tried), and a row group a thread would not fit into it.
BOUNDS = "SET memory_limit = '250MB'; SET threads = 1"
HERE = Path(__file__).parent


def connect(path: Path, read_only: bool = True) -> duckdb.DuckDBPyConnection:
    """Opens a recording. Raises HarnessError for a torn, foreign, newer or locked file."""
    try:
        con = duckdb.connect(str(path), read_only=read_only)
    except duckdb.IOException as error:
        text = str(error)
        if "lock" in text.lower():
            raise HarnessError(
                f"{path}: another process has this recording open: {text}"
            ) from error
        raise HarnessError(
            f"{path}: not a readable DuckDB file (torn, or of another program): {_line(text)}"
        ) from error
    except duckdb.Error as error:
        raise HarnessError(f"{path}: cannot be opened: {_line(str(error))}") from error
    try:
        row = con.execute("SELECT schema_version FROM recording").fetchone()
    except duckdb.Error as error:
        con.close()
        raise HarnessError(
            f"{path}: a DuckDB file, but not a recording of this harness: {_line(str(error))}"
        ) from error
    if row is None or row[0] != SCHEMA_VERSION:
        con.close()
        found = "none" if row is None else row[0]
        raise HarnessError(
            f"{path}: schema version {found}; this harness reads version {SCHEMA_VERSION}. An "
            "older one is migrated by: .venv/bin/python -m harness check --refresh-views"
        )
    return con


def apply_views(con: duckdb.DuckDBPyConnection) -> None:
    """Creates the views of views.sql anew and notes which version of it they are."""
    con.execute((HERE / "views.sql").read_text(encoding="utf-8"))
    con.execute("UPDATE recording SET views_sha256 = ?", [_views_sha256()])


def views_are_stale(con: duckdb.DuckDBPyConnection) -> bool:
    """Whether the views in the file are of another version of views.sql."""
    return con.execute("SELECT views_sha256 FROM recording").fetchone() != (_views_sha256(),)


def _views_sha256() -> str:
    return hashlib.sha256((HERE / "views.sql").read_bytes()).hexdigest()


class Recording:
    """A recording that is being written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.con = connect(path, read_only=False)
        self.con.execute(BOUNDS)
        self._open = False  # a transaction is

    @classmethod
    def create(cls, path: Path, **header: Any) -> "Recording":
        """A new file with schema, views and its one row of table recording.

        It gets its name when it is whole: a kill before leaves no file that cannot be continued.
        """
        draft = path.with_name(path.name + ".draft")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.unlink(missing_ok=True)
            with duckdb.connect(str(draft)) as con:
                con.begin()
                con.execute((HERE / "schema.sql").read_text(encoding="utf-8"))
                _insert(con, "recording", [header | {"schema_version": SCHEMA_VERSION}])
                apply_views(con)
                con.commit()
            os.replace(draft, path)
        except (duckdb.Error, OSError) as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise HarnessError(f"{path}: cannot be created: {_line(str(error))}") from error
        return cls(path)

    def header(self) -> dict[str, Any]:
        """The one row of table recording."""
        cursor = self.con.execute("SELECT * FROM recording")
        columns = [column[0] for column in cursor.description or ()]
        (row,) = cursor.fetchall()
        return dict(zip(columns, row, strict=True))

    def next_id(self, table: str, column: str) -> int:
        ((number,),) = self.con.execute(
            f"SELECT coalesce(max({column}), 0) + 1 FROM {table}"
        ).fetchall()
        return int(number)

    def done(self) -> set[int]:
        """Positions of the cells that are in."""
        return {row[0] for row in self.con.execute("SELECT position FROM cell").fetchall()}

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, also where it is interrupted; inside another one it is part of that.

        A full disk or a torn file becomes a HarnessError; nothing that was committed is lost.
        """
        if self._open:
            yield
            return
        self._open = True
        try:
            self.con.begin()
            yield
            self.con.commit()
        except BaseException as error:
            with suppress(duckdb.Error):  # a failed commit has rolled back already
                self.con.rollback()
            if not isinstance(error, duckdb.Error):
                raise
            raise HarnessError(
                f"{self.path}: could not be written ({_line(str(error))}). Every cell finished "
                "before is kept. Where the disk is full, free disk space; then run the same "
                "command again"
            ) from error
        finally:
            self._open = False

    def insert(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        _insert(self.con, table, rows)

    def update_run(self, run_id: int, **values: Any) -> None:
        """Sets columns of one engine_run row."""
        assignments = ", ".join(f"{name} = ?" for name in values)
        with self.transaction():
            self.con.execute(
                f"UPDATE engine_run SET {assignments} WHERE run_id = ?", [*values.values(), run_id]
            )

    def finish(self, enter: Callable[[Path], object]) -> Path:
        """Marks the recording finished and rewrites it compactly without `.partial`.

        enter: is given the final path, to list it. The partial file is removed only after that, so
        that a kill in between is mended by the same command. Returns the final path.
        """
        final = self.path.with_name(self.path.name.replace(".partial.duckdb", ".duckdb"))
        draft = final.with_name(final.name + ".draft")
        with self.transaction():
            self.con.execute(
                "UPDATE recording SET finished_at = coalesce(finished_at, ?)", [datetime.now(UTC)]
            )
        quoted = str(draft).replace("'", "''")
        try:
            draft.unlink(missing_ok=True)
            self.con.execute(f"ATTACH '{quoted}' AS draft (BLOCK_SIZE {BLOCK_BYTES})")
            self.con.execute(f'COPY FROM DATABASE "{self._database_name()}" TO draft')
            self.con.execute("CHECKPOINT draft")
            self.con.execute("DETACH draft")
            self.close()
            os.replace(draft, final)
        except (duckdb.Error, OSError) as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise HarnessError(
                f"{final}: could not be written ({_line(str(error))}). {self.path} is complete; "
                "free disk space and run the same command again"
            ) from error
        enter(final)
        self.path.unlink()
        return final

    def close(self) -> None:
        self.con.close()

    def _database_name(self) -> str:
        ((name,),) = self.con.execute("SELECT current_database()").fetchall()
        return str(name)


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record_of(item: Any) -> dict[str, Any]:
    """A dataclass as a row; unlike asdict it does not copy lists."""
    return {field.name: getattr(item, field.name) for field in fields(item)}


def _insert(con: duckdb.DuckDBPyConnection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    new_rows = pd.DataFrame(
        {name: pd.Series([r[name] for r in rows], dtype=object) for name in rows[0]}
    )
    for name in new_rows.columns:
        new_rows[name] = new_rows[name].map(lambda v: json.dumps(v) if isinstance(v, dict) else v)
    # Found by its name here. One that is registered lives until the transaction ends, though it is
    # unregistered before: 5 KB a request, 5 GB of a million.
    con.execute(f"INSERT INTO {table} BY NAME SELECT * FROM new_rows")


def _line(text: str) -> str:
    return " ".join(text.split())[:300]
