"""A recording whose load comes from two machines: here both are this one."""

import subprocess
import sys
from pathlib import Path

from harness.recording.store import connect
from tests.emulate import free_port, running_emulator
from tests.test_record import finish, root_with, start


def test_a_worker_joins_every_cell_and_nothing_is_recorded_twice(tmp_path: Path) -> None:
    root, listen = root_with(tmp_path), f"127.0.0.1:{free_port()}"
    worker = subprocess.Popen([sys.executable, "-m", "harness.load", "--worker", listen])
    try:
        with running_emulator(ttft_ms=20, gap_ms=5) as url:
            summary = finish(root, "--url", url, "--listen", listen, "--load-machines", "1")
    finally:
        worker.kill()
        worker.wait()
    with connect(root / summary["recording"]) as con:
        cells = con.execute("SELECT processes, client->>'minimums_met' FROM cell").fetchall()
        assert cells == [(2, "true")] * 2
        requests = con.execute(
            "SELECT cell_id, process, count(*), count(DISTINCT request_id), max(error) "
            "FROM request GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    # 2 to warm up and 6 measured in each cell, dealt out in turn
    assert requests == [(cell, process, 4, 4, None) for cell in (1, 2) for process in (0, 1)]


def test_load_machines_need_an_address_and_a_server_that_they_reach(tmp_path: Path) -> None:
    process = start(root_with(tmp_path), "--load-machines", "1", "--listen", "127.0.0.1:0")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "--load-machines needs --listen, and a --url" in err
