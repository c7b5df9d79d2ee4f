"""A recording that was killed and continued has the cells of one that was not."""

import signal
from pathlib import Path
from typing import Any

import pytest

from harness.experiment import load
from harness.rates import rate_per_s
from harness.recording.store import Recording, connect
from harness.schedule import cells
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
# The steps' shares of the capacity where no step is INVALID: the machine alone can make one so.
SHARES = {"holds": [0.7, 0.95, 1.075], "fails": [0.7, 0.45, 0.325]}
# What a plan fixes. Rates are measured, so they are not of it.
CONTENT = """
SELECT position, repeat, variant, sweep, prompt_tokens, in_flight, search_step, shared_tokens,
    (SELECT list((phase, prompt_hash, asked_prompt_tokens, asked_output_tokens,
        shared_prefix_tokens) ORDER BY request_id) FROM request r WHERE r.cell_id = c.cell_id)
FROM cell c ORDER BY position
"""
STEPS = """
SELECT sweep, list(reasons), list(round(rate_per_s / (SELECT max(requests_per_s) FROM outcome o
    WHERE o.sweep = 'length' AND o.repeat = 1 AND o.verdict = 'VALID'
        AND o.prompt_tokens = c.prompt_tokens), 9) ORDER BY search_step)
FROM cell c WHERE search_step IS NOT NULL GROUP BY sweep, repeat
"""


def content(path: Path) -> list[tuple[Any, ...]]:
    with connect(path) as con:
        return con.execute(CONTENT).fetchall()


def check_rates(root: Path, path: Path) -> None:
    """Each step ran at the rate that the recorded steps before it give, whatever became of them."""
    experiment = load(root / "episodes" / "77-test" / "experiment.toml")
    tier = experiment.tiers["cpu"]
    recording = Recording(path)
    ran = dict(recording.con.execute("SELECT position, rate_per_s FROM cell").fetchall())
    for cell in cells(experiment, tier, tier.engines):
        assert ran[cell.position] == rate_per_s(recording, tier, cell), str(cell.level)
    for sweep, reasons, shares in recording.con.execute(STEPS).fetchall():
        assert any(reasons) or shares == SHARES[sweep]
    recording.close()


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
    check_rates(whole, whole / summary["recording"])

    torn = declared(tmp_path / "torn")
    left = CELLS
    for printed in (5, 7):  # killed in the middle of a cell of the first repeat and of the second
        process = start(torn)
        assert process.stderr is not None
        seen = 0
        for line in process.stderr:
            seen += line.startswith("cell ")
            if seen == printed:
                break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        left -= printed
    summary = finish(torn, timeout_s=200)
    assert left - 2 <= summary["recorded_now"] <= left  # one may be in before it is printed
    assert content(torn / summary["recording"]) == expected
    check_rates(torn, torn / summary["recording"])
