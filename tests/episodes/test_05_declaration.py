"""Episode 05's declaration, texts and small models, before anything is recorded."""

import json
from pathlib import Path

import pytest

from harness.experiment import load
from harness.models import BUILDERS
from harness.render import model, queries

EPISODE = Path(__file__).parents[2] / "episodes" / "05-attention-kernels-and-precision"
TIER = load(EPISODE / "experiment.toml").tiers["cpu"]


def test_every_model_that_a_precision_needs_is_one_that_the_project_makes() -> None:
    (scores,) = [job for job in TIER.jobs if job.script == "scores.py"]
    folders = {arg.split("{models}/")[1].split(",")[0] for arg in scores.args if "{models}" in arg}
    served = {variant.model for variant in TIER.variants.values() if variant.model}
    assert (folders | served) - set(BUILDERS) == {"smollm2-135m-instruct"}


def test_the_texts_are_four_and_a_line_each() -> None:
    lines = (EPISODE / "heldout.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line) for line in lines]
    assert len({text["id"] for text in texts}) == 4
    assert all(250 < len(text["text"].split()) < 400 for text in texts)


def test_a_pool_holds_whole_blocks() -> None:
    """30 layers, 3 heads of 64: 46,080 bytes in 32 bits; a GiB holds 182 blocks of 128 of them."""
    pool = model.load(EPISODE / "model.py")["pool"].function
    found = pool(model="SmolLM2-135M", number_bytes=4, pool_gib=1, block_tokens=128)
    assert (found["token_bytes"], found["pool_tokens"]) == (46_080, 182 * 128)


def test_a_kernel_stands_under_the_higher_of_two_floors() -> None:
    """One query over 100 tokens: 100 pairs of 4 x 64 x 9 flop, and 2 x 64 x 4 bytes for each of 9
    heads once and 3 heads 100 times. At 1 flop and 1 byte a ns the flop take longer."""
    kernel = model.load(EPISODE / "model.py")["kernel"].function
    rates = {"gflop_s": 1.0, "gbyte_s": 1.0}
    found = kernel(phase="decode", tokens=100, base_ms=0.1, per_pair_ns=5000.0, **rates)
    assert found["ms"] == pytest.approx(0.6)
    assert found["roof_ms"] == pytest.approx(230_400 / 1e6)
    assert found["intensity"] == pytest.approx(230_400 / (512 * 309))


def test_every_query_has_a_name_and_every_part_is_there() -> None:
    named = queries.parse((EPISODE / "queries.sql").read_text(encoding="utf-8"), "queries.sql")
    assert {"quality", "attempts", "roof_best", "pool"} <= set(named)
