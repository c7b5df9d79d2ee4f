"""The file: torn, foreign, locked, full; and that a finished one is whole."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from harness.errors import HarnessError
from harness.recording.store import Recording, apply_views, connect, views_are_stale
from tests.recording.conftest import cell, create, request


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    whole = tmp_path / "whole.partial.duckdb"
    create(whole).close()
    torn = tmp_path / "torn.duckdb"
    torn.write_bytes(whole.read_bytes()[:5000])
    with pytest.raises(HarnessError, match=r"torn\.duckdb"):
        connect(torn)


def test_a_file_of_another_program_is_named(tmp_path: Path) -> None:
    text = tmp_path / "notes.duckdb"
    text.write_text("not a database at all, only a text that is long enough to hold a header" * 90)
    with pytest.raises(HarnessError, match=r"notes\.duckdb: not a readable DuckDB file"):
        connect(text)
    foreign = tmp_path / "foreign.duckdb"
    duckdb.connect(str(foreign)).execute("CREATE TABLE t (a INTEGER)").close()
    with pytest.raises(HarnessError, match=r"foreign\.duckdb: a DuckDB file, but not a recording"):
        connect(foreign)


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "new.partial.duckdb"
    made = create(path)
    made.con.execute("UPDATE recording SET schema_version = 99")
    made.close()
    with pytest.raises(HarnessError, match="schema version 99; this harness reads version 4"):
        connect(path)


def test_a_recording_open_elsewhere_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "held.partial.duckdb"
    create(path).close()
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import duckdb; c = duckdb.connect({str(path)!r}); print('open', flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(HarnessError, match="another process has this recording open"):
            Recording(path)
    finally:
        holder.communicate("\n", timeout=10)


def test_finish_keeps_every_row_and_view(tmp_path: Path) -> None:
    made = create(tmp_path / "2026-01-02-cpu.partial.duckdb")
    with made.transaction():
        made.insert("cell", [cell(1)])
        made.insert("request", [request(1, i) for i in range(5)])
    entered: list[Path] = []
    final = made.finish(entered.append)
    assert entered == [final]
    assert final.name == "2026-01-02-cpu.duckdb"
    assert [p.name for p in tmp_path.iterdir()] == [final.name]
    with connect(final) as con:
        assert con.execute("SELECT count(*) FROM ttft").fetchone() == (5,)
        assert con.execute("SELECT finished_at IS NOT NULL FROM recording").fetchone() == (True,)
        assert not views_are_stale(con)


def test_views_of_another_version_are_stale_until_applied(tmp_path: Path) -> None:
    made = create(tmp_path / "a.partial.duckdb")
    made.con.execute("UPDATE recording SET views_sha256 = 'older'")
    assert views_are_stale(made.con)
    apply_views(made.con)
    assert not views_are_stale(made.con)
    made.close()


FILL = """
import sys
from pathlib import Path
from harness.errors import HarnessError
from harness.recording.store import Recording
from tests.recording.conftest import cell, create, request
import random
made = create(Path(sys.argv[1]))
try:
    for cell_id in range(1, 400):
        gaps = [random.getrandbits(31) for _ in range(2000)]
        with made.transaction():
            made.insert("cell", [cell(cell_id)])
            rows = [request(cell_id, i, chunk_gap_us=gaps) for i in range(20)]
            made.insert("request", rows)
        print(cell_id, flush=True)
except HarnessError as error:
    print("ERROR", error, flush=True)
"""


def test_a_full_disk_is_an_error_and_loses_no_finished_cell(tmp_path: Path) -> None:
    """A tmpfs of 6 MB in a mount namespace of its own, so that nothing outlives the test; where
    mounting is not allowed, a limit of 6 MB on file size, which fails in the same call."""
    disk = tmp_path / "disk"
    disk.mkdir()
    namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["-Ur"])]
    limit = f"mount -t tmpfs -o size=6m tmpfs {disk}"
    if subprocess.run([*namespace, "sh", "-c", limit], capture_output=True).returncode != 0:
        namespace, limit = ["env"], "ulimit -f 12000"
    script = (
        f"{limit} && "
        f"{sys.executable} -c '{FILL}' {disk}/full.partial.duckdb; cp {disk}/full* {tmp_path}"
    )
    done = subprocess.run(
        [*namespace, "sh", "-c", script],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=120,
    )
    lines = done.stdout.strip().splitlines()
    finished = [int(line) for line in lines if line.isdigit()]
    assert lines[-1].startswith("ERROR"), done.stdout + done.stderr
    assert "full.partial.duckdb: could not be written" in lines[-1]
    assert "free disk space" in lines[-1]
    assert len(finished) > 3
    with connect(tmp_path / "full.partial.duckdb", read_only=False) as con:
        kept = [row[0] for row in con.execute("SELECT cell_id FROM cell ORDER BY 1").fetchall()]
        assert kept == finished
        assert con.execute("SELECT count(*) FROM request").fetchone() == (20 * len(kept),)


def test_an_interrupted_transaction_leaves_the_file_usable(tmp_path: Path) -> None:
    made = create(tmp_path / "a.partial.duckdb")
    with pytest.raises(KeyboardInterrupt), made.transaction():
        made.insert("cell", [cell(1)])
        raise KeyboardInterrupt
    with made.transaction():
        made.insert("cell", [cell(2)])
        with made.transaction():  # part of the outer one
            made.insert("cell", [cell(3)])
    assert made.con.execute("SELECT cell_id FROM cell ORDER BY 1").fetchall() == [(2,), (3,)]
    made.close()


def test_a_path_with_an_apostrophe_is_no_trap(tmp_path: Path) -> None:
    made = create(tmp_path / "o'brien" / "a.partial.duckdb")
    assert made.finish(lambda path: None).exists()


def test_rows_are_let_go_before_their_transaction_ends(recording: Recording) -> None:
    """A cell of a million requests is one transaction, and its memory must not grow with it."""
    settings = "SELECT current_setting('memory_limit'), current_setting('threads')"
    assert recording.con.execute(settings).fetchall() == [("238.4 MiB", 1)]
    before = frames_in_memory()
    with recording.transaction():
        for number in range(1, 4):
            recording.insert("request", [request(number, 1)])
        assert frames_in_memory() <= before


def frames_in_memory() -> int:
    gc.collect()
    return sum(isinstance(found, pd.DataFrame) for found in gc.get_objects())
