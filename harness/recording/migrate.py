"""Brings a recording of the schema version before to this one, row by row, and adds nothing.

A migration is one SQL file, named after the version that it makes; what was recorded stays as it
was, to the resolution of the new schema.
"""

import os
from contextlib import suppress
from pathlib import Path

import duckdb

from harness.errors import HarnessError
from harness.recording.store import BLOCK_BYTES, HERE, SCHEMA_VERSION, apply_views


def migrate(path: Path) -> bool:
    """Rewrites the file in place, whole or not at all; False where it is of this version already.

    Raises HarnessError naming the file where it can't be read or written, or has no migration.
    """
    draft = path.with_name(path.name + ".draft")
    try:
        with duckdb.connect(str(path), read_only=True) as con:
            ((version,),) = con.execute("SELECT schema_version FROM recording").fetchall()
        if version == SCHEMA_VERSION:
            return False
        if version != SCHEMA_VERSION - 1:
            raise HarnessError(
                f"{path}: schema version {version} can't be brought to {SCHEMA_VERSION} at once"
            )
        draft.unlink(missing_ok=True)
        _rewrite(path, draft)
        os.replace(draft, path)
    except (duckdb.Error, OSError) as error:
        raise HarnessError(f"{path}: could not be migrated: {error}") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return True


def _rewrite(path: Path, draft: Path) -> None:
    quoted = [str(file).replace("'", "''") for file in (path, draft)]
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{quoted[0]}' AS old (READ_ONLY)")
        con.execute(f"ATTACH '{quoted[1]}' AS new (BLOCK_SIZE {BLOCK_BYTES})")
        con.execute("USE new")
        con.execute((HERE / "schema.sql").read_text(encoding="utf-8"))
        con.execute((HERE / "migrations" / f"{SCHEMA_VERSION}.sql").read_text(encoding="utf-8"))
        apply_views(con)
        con.execute("CHECKPOINT new")
