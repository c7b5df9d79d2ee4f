"""Arrivals: the rates that were asked for, the same from the same seed, and torn traces refused."""

import json
from itertools import islice, pairwise
from pathlib import Path
from statistics import mean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import arrivals
from harness.errors import HarnessError


def test_constant_deadlines_do_not_drift() -> None:
    assert list(islice(arrivals.constant(3.0), 3)) == [333_333_333, 666_666_667, 1_000_000_000]


@pytest.mark.parametrize(("burstiness", "variation"), [(1.0, 1.0), (0.25, 2.0), (4.0, 0.5)])
def test_gamma_gaps_have_the_mean_and_the_spread_asked_for(
    burstiness: float, variation: float
) -> None:
    due = list(islice(arrivals.gamma(50.0, burstiness, "seed"), 20_000))
    gaps_s = [(b - a) / 1e9 for a, b in pairwise(due)]
    assert mean(gaps_s) == pytest.approx(0.02, rel=0.05)
    assert pstdev(gaps_s) / mean(gaps_s) == pytest.approx(variation, rel=0.05)


@given(st.floats(0.1, 1000), st.floats(0.2, 5), st.text(max_size=5))
def test_gamma_is_the_seeds_alone_and_never_goes_back(
    rate: float, burstiness: float, seed: str
) -> None:
    first = list(islice(arrivals.gamma(rate, burstiness, seed), 20))
    assert first == list(islice(arrivals.gamma(rate, burstiness, seed), 20))
    assert first == sorted(first)


def test_stages_send_each_rate_for_its_time() -> None:
    due = [
        ns / 1e9 for ns in arrivals.stages(((200.0, 50.0), (0.0, 10.0), (20.0, 50.0)), False, "s")
    ]
    first, pause, last = (
        sum(low <= at < high for at in due) for low, high in ((0, 50), (50, 60), (60, 110))
    )
    assert first == pytest.approx(10_000, rel=0.05)
    assert pause == 0
    assert last == pytest.approx(1_000, rel=0.1)


def test_a_ramp_sends_half_its_area_in_the_last_three_tenths() -> None:
    # From 0 to 400/s in 50 s: area 10,000; up to 35.36 s (0.7071 of it) lies half of it.
    due = [ns / 1e9 for ns in arrivals.stages(((0.0, 50.0), (400.0, 1e-9)), True, "s")]
    assert len(due) == pytest.approx(10_000, rel=0.05)
    assert sum(at < 35.355 for at in due) == pytest.approx(5_000, rel=0.05)


def trace(folder: Path, *lines: str) -> Path:
    path = folder / "trace.jsonl"
    path.write_text("\n".join(lines))
    return path


def row(**changes: object) -> str:
    return json.dumps({"timestamp": 0, "input_length": 600, "output_length": 7} | changes)


def test_a_trace_gives_its_times_lengths_and_blocks(tmp_path: Path) -> None:
    path = trace(tmp_path, row(hash_ids=[4, 9]), row(timestamp=1500))
    first, second = arrivals.trace(path, time_scale=2.0)
    assert (first.due_ns, first.prompt_tokens, first.output_tokens) == (0, 600, 7)
    assert first.block_ids == (4, 9)
    assert (second.due_ns, second.block_ids) == (3_000_000_000, ())


@pytest.mark.parametrize(
    "torn",
    [
        '{"timestamp": 5, "input_le',
        '{"timestamp": 5}',
        "[]",
        row(timestamp="soon"),
        row(output_length=0),
        row(timestamp=-1),
    ],
)
def test_a_torn_line_names_file_and_line(tmp_path: Path, torn: str) -> None:
    path = trace(tmp_path, row(), torn)
    with pytest.raises(HarnessError, match=r"trace\.jsonl, line 2: not a line of a trace"):
        list(arrivals.trace(path))


def test_time_that_runs_back_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    path = trace(tmp_path, row(timestamp=5), row(timestamp=4))
    with pytest.raises(HarnessError, match="line 2: its timestamp is before"):
        list(arrivals.trace(path))
    with pytest.raises(HarnessError, match="the trace cannot be read"):
        list(arrivals.trace(tmp_path / "none.jsonl"))
