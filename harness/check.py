"""`make check`'s last step: declarations, recordings and prose agree with each other."""

from collections.abc import Iterator
from pathlib import Path

from harness import experiment
from harness.errors import HarnessError
from harness.recording import verdict
from harness.recording.migrate import migrate
from harness.recording.store import apply_views, connect, views_are_stale
from harness.render import manifest, prose_numbers

DATA_LIMIT_BYTES = 80e6  # the recordings are part of the repository


def run(root: Path, refresh_views: bool, rejudge: bool = False) -> Iterator[str]:
    """Yields a line for each thing checked; raises HarnessError at the first that fails."""
    for path in sorted((root / "episodes").glob("*/experiment.toml")):
        experiment.load(path)
        yield f"ok {path.relative_to(root)}"
    # data/peers holds benchmarks of load generators, which have no cells.
    recordings = [
        path
        for path in sorted((root / "data").glob("[0-9][0-9]/*.duckdb"))
        if ".partial." not in path.name
    ]
    manifest.verify(root)
    if refresh_views:
        for path in recordings:
            _refresh(root, path)
    if rejudge:
        for path in recordings:
            yield from _rejudge(root, path)
    for path in recordings:
        with connect(path) as con:
            if views_are_stale(con):
                raise HarnessError(
                    f"{path}: its views are of another version of harness/recording/views.sql. "
                    "Mend: .venv/bin/python -m harness check --refresh-views"
                )
        yield f"ok {path.relative_to(root)}"
    size_bytes = sum(path.stat().st_size for path in (root / "data").glob("*/*.duckdb"))
    if size_bytes > DATA_LIMIT_BYTES:
        raise HarnessError(f"data/ holds {size_bytes / 1e6:.0f} MB; the limit is 80 MB")
    prose_numbers.check(root)
    yield "ok prose: no measured number is typed"


def _refresh(root: Path, path: Path) -> None:
    """Brings one recording to this schema and these views; what was recorded stays as it was."""
    migrated = migrate(path)
    with connect(path, read_only=False) as con:
        if not migrated and not views_are_stale(con):
            return
        apply_views(con)
        con.execute("CHECKPOINT")
    manifest.update(root, path)


def _rejudge(root: Path, path: Path) -> Iterator[str]:
    """Judges the cells of one recording anew, by today's checks on the rows that it has."""
    with connect(path) as con:
        cells = con.execute("SELECT cell_id, reasons FROM cell ORDER BY 1").fetchall()
        changed = [cell_id for cell_id, said in cells if verdict.judge(con, cell_id) != said]
    if not changed:
        return
    with connect(path, read_only=False) as con:
        for cell_id in changed:
            reasons = verdict.pronounce(con, cell_id)
            yield f"{path.relative_to(root)}: cell {cell_id}: {'; '.join(reasons) or 'VALID'}"
        con.execute("CHECKPOINT")
    manifest.update(root, path)
