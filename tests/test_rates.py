"""Where the rate of an open loop comes from: a share of a capacity, or the steps of a search."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError
from harness.experiment import Tier, load
from harness.rates import bracket, rate_per_s
from harness.recording.store import Recording
from harness.schedule import Cell, cells
from tests.recording.conftest import MS, cell, create, request
from tests.test_experiment import DECLARATION, write

OPEN = """
[[tier.cpu.sweep]]
name = "{name}"
endpoint = "completions"
prompt_tokens = [8]
output_tokens = 4
load = "poisson"
capacity_of = "length"
connections = 16
warmup_requests = 1
min_requests = 11
"""
SHARE = OPEN.format(name="open") + "capacity_frac = [0.5]\n"
SEARCH = OPEN.format(name="search") + (
    "search_steps = 4\nsearch_frac = [0.2, 1.2]\n"
    "slo_ttft_ms = 30\nslo_tpot_ms = 15\nslo_quantile = 0.5\n"
)


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    """Variant a did 10 requests in a closed loop of 2 s in the first repeat."""
    made = create(tmp_path / "r.partial.duckdb")
    put(made, 1, 10)
    yield made
    made.close()


def put(recording: Recording, cell_id: int, requests: int, **changes: Any) -> None:
    of_request = changes.pop("request", {})
    with recording.transaction():
        recording.insert("cell", [cell(cell_id, **{"variant": "a"} | changes)])
        recording.insert(
            "request", [request(cell_id, n, **of_request) for n in range(1, requests + 1)]
        )


def planned(
    folder: Path, text: str, variant: str = "a", repeat: int = 1
) -> tuple[Tier, list[Cell]]:
    """The open-loop cells of one variant in one repeat."""
    experiment = load(write(folder, text))
    tier = experiment.tiers["cpu"]
    every = cells(experiment, tier, tier.engines)
    mine = [c for c in every if (c.variant, c.repeat) == (variant, repeat)]
    return tier, [c for c in mine if c.level.sweep.capacity_of]


def test_a_share_is_of_the_best_valid_rate_of_the_first_repeat(
    tmp_path: Path, recording: Recording
) -> None:
    changes: list[dict[str, Any]] = [{"in_flight": 4}, {"repeat": 2}, {"verdict": "INVALID"}]
    changes += [{"variant": "b"}, {"sweep": "other"}]
    for number, change in enumerate(changes, start=2):
        put(recording, number, {2: 12}.get(number, 40), **change)
    tier, (half,) = planned(tmp_path, DECLARATION + SHARE)
    assert rate_per_s(recording, tier, half) == 0.5 * 12 / 2
    with recording.transaction():
        recording.con.execute("DELETE FROM cell WHERE cell_id <= 2")
    said = r"a has no VALID cell of sweep 'length' in repeat 1, .* sweep 'open' takes a share"
    with pytest.raises(HarnessError, match=said):
        rate_per_s(recording, tier, half)


def test_a_variant_outside_of_the_closed_sweep_gets_the_load_of_its_plain_engine(
    tmp_path: Path, recording: Recording
) -> None:
    text = DECLARATION.replace('["a", "b", "c"]', '["a", "capped"]').replace(
        "in_flight = 1", 'in_flight = 1\nengines = ["a"]'
    )
    text = text.replace("[[tier", '[tier.cpu.variant.capped]\nengine = "a"\n\n[[tier', 1)
    tier, (half,) = planned(tmp_path, text + SHARE, variant="capped")
    assert rate_per_s(recording, tier, half) == 0.5 * 10 / 2
    too_early = text.replace('["a", "capped"]', '["capped", "a"]')
    with pytest.raises(HarnessError, match=r"engines: capped: comes before its plain engine"):
        load(write(tmp_path, too_early + SHARE))


def test_a_search_halves_its_bracket(tmp_path: Path, recording: Recording) -> None:
    """Capacity 5 a second. The requests take 30 ms to the first token, of which 10 in the client,
    and 40 / 3 ms a token after it: in time, and late by a millisecond where they are changed."""
    tier, steps = planned(tmp_path, DECLARATION + SEARCH)
    assert [step.level.search_step for step in steps] == [1, 2, 3, 4]
    late = {"first_token_ns": 131 * MS}
    slow = {"last_token_ns": 176 * MS}
    for place, (rate, found) in enumerate(((3.5, {}), (4.75, late), (4.125, slow))):
        assert rate_per_s(recording, tier, steps[place]) == rate
        here = {"sweep": "search", "search_step": place + 1, "rate_per_s": rate}
        put(recording, place + 2, 11, **here, request=found)
    assert rate_per_s(recording, tier, steps[3]) == 3.8125
    assert bracket(recording, tier, steps[3]) == (3.5, 4.125)
    tier, again = planned(tmp_path, DECLARATION + SEARCH, repeat=2)
    assert rate_per_s(recording, tier, again[0]) == 3.5  # every repeat searches for itself


@pytest.mark.parametrize(
    ("reasons", "request_", "expected"),
    [
        ([], {}, (3.5, 6.0)),
        (["steady_state: requests took 1 ms in the first and 9 ms"], {}, (1.0, 3.5)),
        (["errors: 1 of 11 failed, first: timed out"], {"error": "timed out"}, (1.0, 3.5)),
        (["client_busy: a load process used 99% of its core"], {}, (1.0, 6.0)),
        (["steady_state: x", "cpu_steal: y"], {}, (1.0, 6.0)),
    ],
)
def test_only_what_the_server_did_moves_an_end(
    tmp_path: Path,
    recording: Recording,
    reasons: list[str],
    request_: dict[str, Any],
    expected: tuple[float, float],
) -> None:
    tier, steps = planned(tmp_path, DECLARATION + SEARCH)
    verdict = "INVALID" if reasons else "VALID"
    here = {"sweep": "search", "search_step": 1, "rate_per_s": 3.5}
    put(recording, 2, 11, **here, verdict=verdict, reasons=reasons, request=request_)
    assert bracket(recording, tier, steps[1]) == expected


def test_the_share_of_requests_that_must_be_in_time_counts_failed_ones(
    tmp_path: Path, recording: Recording
) -> None:
    """Half of them must be: 6 of 11 are enough, 5 are not."""
    tier, steps = planned(tmp_path, DECLARATION + SEARCH)
    put(recording, 2, 11, sweep="search", search_step=1, rate_per_s=3.5)
    for failed, low in ((5, 3.5), (6, 1.0)):
        recording.con.execute(
            f"UPDATE request SET error = 'x' WHERE cell_id = 2 AND request_id <= {failed}"
        )
        assert bracket(recording, tier, steps[1])[0] == low


def test_steps_keep_their_order_in_every_repeat_and_follow_the_capacity_in_the_first(
    tmp_path: Path,
) -> None:
    experiment = load(write(tmp_path, DECLARATION + SEARCH))
    every = cells(experiment, experiment.tiers["cpu"], ("a", "b"))
    for repeat in (1, 2, 3):
        order = [c.level.search_step for c in every if (c.variant, c.repeat) == ("a", repeat)]
        assert [step for step in order if step] == [1, 2, 3, 4]
        if repeat == 1:
            assert order[:2] == [None, None]
