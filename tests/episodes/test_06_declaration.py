"""Episode 06's declaration, its texts and its small models, before anything is recorded."""

import json
import re
from pathlib import Path

import pytest

from harness.experiment import load
from harness.models import BUILDERS
from harness.render import model
from harness.texts import of_sweep, read

EPISODE = Path(__file__).parents[2] / "episodes" / "06-speculative-decoding-and-structured-outputs"
TIER = load(EPISODE / "experiment.toml").tiers["cpu"]
SWEEPS = {sweep.name: sweep for sweep in TIER.sweeps}


def test_every_sweep_s_texts_fit_it() -> None:
    assert all(of_sweep(sweep, EPISODE) for sweep in TIER.sweeps)


def test_each_kind_has_24_texts_and_they_come_in_turn() -> None:
    kinds = [text.kind for text in read(EPISODE / "texts.jsonl")]
    assert kinds[:72] == ["edit", "template", "prose"] * 24
    assert len({text.prompt for text in read(EPISODE / "texts.jsonl")}) == len(kinds)


def test_a_text_to_edit_holds_the_word_that_is_exchanged() -> None:
    for text in read(EPISODE / "texts.jsonl"):
        if found := re.search(
            r'write "(\w+)" instead of "(\w+)"[^\n]*\n\n(.*)<\|im_end', text.prompt
        ):
            new, old, rest = found.groups()
            assert old in rest.lower() and new not in rest.lower().split(), text.id


def test_every_constraint_is_asked_twice_and_its_check_is_the_constraint() -> None:
    asked: dict[str, list[str]] = {}
    for text in read(EPISODE / "structured.jsonl")[:-1]:
        (said,) = (text.extras or {})["bound"]["structured_outputs"].items()
        asked.setdefault(json.dumps(said), []).append(text.id)
        kind, value = said
        if kind == "json":
            assert json.loads(text.expected) == value
        elif kind == "regex":
            assert text.expected == value
        elif kind == "choice":
            assert text.expected.split("|") == value
    assert len(asked) == 16
    assert all(
        [name.rpartition("-")[2] for name in names] == ["first", "again"]
        for names in asked.values()
    )


def test_labels_are_balanced() -> None:
    texts = [text for text in read(EPISODE / "labelled.jsonl") if text.kind != "warm"]
    counts = [sum(text.expected == label for text in texts) for label in ("positive", "negative")]
    assert counts == [12, 12]
    for label in ("sport", "food", "travel", "money"):
        assert sum(text.expected == label for text in texts) == 6
    assert all(
        text.expected in (text.extras or {})["choice"]["structured_outputs"]["choice"]
        for text in texts
    )


def test_the_models_that_flags_name_are_made_here() -> None:
    flags = " ".join(flag for variant in TIER.variants.values() for flag in variant.flags)
    named = set(re.findall(r"\{models\}/([\w.-]+)", flags))
    assert named == {
        *("smollm2-draft", "smollm2-draft-random", "smollm2-eagle3", "smollm2-eagle3-random")
    }
    assert named <= set(BUILDERS)


def test_tokens_of_a_pass_are_one_and_the_sum_of_the_shares() -> None:
    """0.72, 0.50 and 0.34 make 2.56; at 30 + 3 x 10 ms a pass a token takes 60 / 2.56 ms."""
    shares = dict(zip((f"a{i}" for i in range(1, 8)), (0.72, 0.5, 0.34, 0, 0, 0, 0), strict=True))
    formula = model.load(EPISODE / "model.py")["depth"].function
    found = formula(depth=3, base_ms=30, each_ms=10, plain_ms=30, **shares)
    assert found["tokens_per_pass"] == pytest.approx(2.56)
    assert found["token_ms"] == pytest.approx(60 / 2.56)
    assert found["times"] == pytest.approx(1.28)
    assert found["adds"] == 0.34


def test_it_stops_paying_where_a_pass_costs_as_many_plain_ones_as_it_gives_tokens() -> None:
    """Two tokens of a pass of 20 + 20 N ms against 30 + 5 N: equal at N = 4."""
    formula = model.load(EPISODE / "model.py")["load"].function
    given = {"base_ms": 20, "each_ms": 20, "plain_base_ms": 30, "plain_each_ms": 5}
    found = formula(in_flight=4, tokens_per_pass=2, **given)
    assert (found["token_ms"], found["pass_cost"], found["times"]) == (50, 2, 1)
