"""Is the figure the recording's, and the recording the server's? Rows 16, 17, 20 and 21."""

import re
from pathlib import Path

from harness.analysis.cells import Cells
from harness.analysis.goodput import goodput
from harness.render import pages
from tests.emulate import load, request_body, running_emulator
from tests.recording.conftest import MS, cell, create, request
from tests.render.conftest import checkout


def test_16_tools_disagree_on_the_same_server(tmp_path: Path) -> None:
    """The server's own truth decides: each recorded time is after it, and close. `make bench`
    holds the other tools against the same truth."""
    with running_emulator(ttft_ms=20, gap_ms=10) as url:
        run = load(tmp_path, url + "/v1/completions", [request_body(max_tokens=8)] * 6)
    for number, got in run.parsed.items():
        truth = [int(t) for t in re.findall(rb'"emulator_ns":(\d+)', run.raw[number].data)]
        assert got.first_token_ns and got.last_token_ns and got.sent_ns
        assert got.sent_ns < truth[0] <= got.first_token_ns < truth[1]
        assert truth[-1] <= got.last_token_ns < truth[-1] + 10 * MS


def test_17_percentiles_change_after_an_upgrade(tmp_path: Path) -> None:
    """TTFT of 1 to 101 ms: the p-th percentile is 1 + p ms, in the views as on paper."""
    recording = create(tmp_path / "test.partial.duckdb")
    rows = [request(1, n, first_token_ns=(110 + n) * MS) for n in range(1, 102)]
    with recording.transaction():
        recording.insert("cell", [cell(1)])
        recording.insert("request", rows)
    found = recording.con.execute(
        "SELECT quantile_cont(from_sent_ms, [0.01, 0.25, 0.5, 0.9, 0.99]) FROM ttft"
    ).fetchall()
    assert found == [([2.0, 26.0, 51.0, 91.0, 100.0],)]
    assert recording.con.execute("SELECT p50_ms FROM ttft_p50").fetchall() == [(51.0,)]
    recording.close()


def test_20_users_want_the_load_that_their_objective_allows(tmp_path: Path) -> None:
    """Twice the rate is nearly twice the throughput, and every second request comes too late: the
    highest rate at which 95 % of the requests have their token within 100 ms is the lower one."""
    recording = create(tmp_path / "test.partial.duckdb")
    rates = {1: 10.0, 2: 20.0}
    loaded = {"load": "poisson", "in_flight": None}
    rows = [request(1, n) for n in range(1, 21)]
    rows += [request(2, n, first_token_ns=(130 + n % 2 * 300) * MS) for n in range(1, 41)]
    with recording.transaction():
        recording.insert("cell", [cell(i, rate_per_s=r, **loaded) for i, r in rates.items()])
        recording.insert("request", rows)
    found = goodput(recording.con, Cells({"load": "poisson"}), {"ttft_from_scheduled": 100.0})
    assert [(each.level["rate_per_s"], each.met, each.requests) for each in found] == [
        (10.0, 20, 20),
        (20.0, 20, 40),
    ]
    assert max(each.level["rate_per_s"] for each in found if each.met_frac >= 0.95) == 10.0
    throughput = recording.con.execute("SELECT requests_per_s FROM outcome ORDER BY cell_id")
    assert throughput.fetchall() == [(10.0,), (20.0,)]
    recording.close()


def test_21_a_table_outlives_its_tools(tmp_path: Path) -> None:
    """Each page says when it was recorded, by which commit, and with which version of an engine."""
    root = checkout(tmp_path)
    pages.build_pages(root)
    page = (root / "docs" / "episodes" / "00-warm-up.md").read_text(encoding="utf-8")
    assert "Recorded 2026-11-30 11:00 UTC" in page
    assert "commit <code>abc</code>" in page
    assert re.findall(r"<div>(vllm|sglang|transformers) (1\.\d)", page)[:3] == [
        ("vllm", "1.1"),
        ("sglang", "1.2"),
        ("transformers", "1.3"),
    ]
    index = (root / "docs" / "episodes" / "index.md").read_text(encoding="utf-8")
    assert "2026-11-30" in index
