"""Episode 15's declaration and its small models, before anything is recorded."""

import tomllib
from pathlib import Path

import pytest

from harness.experiment import load
from harness.render import model

EPISODE = Path(__file__).parents[2] / "episodes" / "15-saturation-slo-and-cost"
SWEEPS = {sweep.name: sweep for sweep in load(EPISODE / "experiment.toml").tiers["cpu"].sweeps}


def test_the_page_s_bounds_are_those_of_the_search() -> None:
    search = SWEEPS["search"]
    bounds = {"ttft_from_scheduled": search.slo_ttft_ms, "tpot": search.slo_tpot_ms}
    analysis = tomllib.loads((EPISODE / "analysis.toml").read_text())
    assert [each["bounds"] for each in analysis["slo"].values()] == [bounds, bounds]


def test_the_open_loop_s_formula_is_the_mean_of_its_chain() -> None:
    """Arrivals at 0.5 a second, n requests end at n / (3 + n): the weights are 1, 2, 2.5, 2.5, ...
    and their mean is rate x (a + b) / (1 - load) = 4. Without a shared part it is the queue M/M/1:
    nine times in ten at most three are there at half load."""
    weights = [1.0]
    for n in range(1, 400):
        weights.append(weights[-1] * 0.5 * (3 + n) / n)
    mean = sum(n * weight for n, weight in enumerate(weights)) / sum(weights)
    arrivals = model.load(EPISODE / "model.py")["arrivals"].function
    given = {"capacity_percent": 50, "b_s": 1.0, "capacity_per_s": 1.0}
    found = arrivals(a_s=3.0, **given)
    assert weights[:4] == [1, 2, 2.5, 2.5]
    assert (found["each_s"], found["in_flight"]) == (8.0, 4.0)
    assert mean == pytest.approx(4.0)
    assert arrivals(a_s=0.0, **given)["often"] == 3
    assert arrivals(a_s=3.0, **given | {"capacity_percent": 100})["each_s"] is None
