"""A recording that was killed and continued has the cells of one that was not."""

import signal
from pathlib import Path
from typing import Any

import pytest

from harness.recording.store import connect
from tests.test_record import FLAGS, finish, root_with, start

# Beside the closed loop of two lengths: a search whose bound always holds and one whose bound never
# does (the emulator takes 30 ms to a first token), lengths in a mix, and prompts that share tokens.
SEARCH = """
[[tier.cpu.sweep]]
name = "{name}"
endpoint = "completions"
prompt_tokens = [24]
output_tokens = 8
load = "poisson"
connections = 16
capacity_of = "length"
search_steps = 3
slo_ttft_ms = {bound_ms}
slo_quantile = 0.5
warmup_requests = 1
min_requests = 11
"""
CLOSED = """
[[tier.cpu.sweep]]
name = "{name}"
endpoint = "completions"
prompt_tokens = [24]
output_tokens = 8
in_flight = 2
warmup_requests = 1
min_requests = 6
{more}
"""
MORE = (
    SEARCH.format(name="holds", bound_ms=9_000)
    + SEARCH.format(name="fails", bound_ms=1)
    + CLOSED.format(name="mix", more="mix = [[16, 4, 2], [48, 6, 1]]")
    + CLOSED.format(name="shared", more="shared_tokens = [12]\ndocuments = 2\ncold = false")
)
CELLS = 2 * (2 + 2 * 3 + 2)
# What a plan fixes. Rates are measured, so they are told as shares of the capacity they rest on.
CONTENT = """
SELECT position, repeat, variant, sweep, prompt_tokens, in_flight, search_step, shared_tokens,
    round(rate_per_s / (SELECT max(requests_per_s) FROM outcome o WHERE o.sweep = 'length'
        AND o.repeat = 1 AND o.verdict = 'VALID' AND o.prompt_tokens = c.prompt_tokens), 9),
    (SELECT list((phase, prompt_hash, asked_prompt_tokens, asked_output_tokens,
        shared_prefix_tokens) ORDER BY request_id) FROM request r WHERE r.cell_id = c.cell_id)
FROM cell c ORDER BY position
"""


def content(path: Path) -> list[tuple[Any, ...]]:
    with connect(path) as con:
        return con.execute(CONTENT).fetchall()


def declared(folder: Path) -> Path:
    root = root_with(folder, repeats=2, flags=[*FLAGS, "--seed", "1"])
    path = root / "episodes" / "77-test" / "experiment.toml"
    path.write_text(path.read_text() + MORE)
    return root


@pytest.mark.timeout(300)
def test_a_recording_resumed_after_a_kill_has_the_same_cells(tmp_path: Path) -> None:
    whole = declared(tmp_path / "whole")
    summary = finish(whole, timeout_s=200)
    assert summary["cells"] == CELLS
    expected = content(whole / summary["recording"])

    torn = declared(tmp_path / "torn")
    left = CELLS
    for cells in (5, 7):  # killed in the middle of a cell of the first repeat and of the second
        process = start(torn)
        assert process.stderr is not None
        seen = 0
        for line in process.stderr:
            seen += line.startswith("cell ")
            if seen == cells:
                break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        left -= cells
    summary = finish(torn, timeout_s=200)
    assert left - 2 <= summary["recorded_now"] <= left  # one may be in before it is printed
    found = content(torn / summary["recording"])
    assert found == expected

    shares = {(row[3], row[6]): row[8] for row in expected if row[6]}
    assert [shares["holds", step] for step in (1, 2, 3)] == [0.7, 0.95, 1.075]
    assert [shares["fails", step] for step in (1, 2, 3)] == [0.7, 0.45, 0.325]
