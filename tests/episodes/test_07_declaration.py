"""Episode 07's declaration, made models and small models, before anything is recorded."""

from pathlib import Path

import numpy as np
import pytest

from harness.experiment import load
from harness.models import BUILDERS, made
from harness.render import model

EPISODE = Path(__file__).parents[2] / "episodes" / "07-parallelism-within-one-node"
TIER = load(EPISODE / "experiment.toml").tiers["cpu"]
MODELS = model.load(EPISODE / "model.py")


def test_every_layout_has_the_same_two_cores_and_the_plain_engine_one() -> None:
    assert TIER.variant("vllm").cores == () and TIER.engine_cores == (0,)
    assert {TIER.variant(name).cores for name in TIER.engines[1:]} == {(0, 1)}


def test_what_is_compared_has_all_repeats() -> None:
    assert TIER.repeats == 5
    assert all(not sweep.repeats for sweep in TIER.sweeps)


def test_the_models_that_are_served_are_made_here() -> None:
    assert TIER.model in BUILDERS
    assert {attempt.model for attempt in TIER.attempts} <= {*BUILDERS, "", "smollm2-135m-instruct"}


@pytest.mark.parametrize("shape", [made.COMMON | each for each in made.SHAPES.values()])
def test_everything_that_is_cut_divides_by_two(shape: dict[str, object]) -> None:
    cut = ("num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size")
    assert all(int(str(shape[key])) % 2 == 0 for key in cut)


def test_the_dense_model_has_the_weights_that_the_bare_product_reads() -> None:
    """12 layers of 3,145,728 and a vocabulary of 25,165,824; the embedding is not read."""
    sizes = dict(made.matrices(made.COMMON | made.SHAPES["dense"]))
    read = sum(rows * columns for name, (rows, columns) in sizes.items() if "embed" not in name)
    assert read == 12 * 3_145_728 + 25_165_824 == 62_914_560
    assert read == 122_880 * made.HIDDEN  # harness/jobs/collectives.py


def test_made_weights_round_to_the_nearest_bfloat16() -> None:
    """1 + 2^-8 lies between 1 and 1 + 2^-7, at the middle: the even one is 1."""
    found = made.to_bf16(np.array([1, 1 + 2**-8, 1 + 3 * 2**-8, -2], np.float32))
    assert [hex(bits) for bits in found] == ["0x3f80", "0x3f80", "0x3f82", "0xc000"]


def test_a_second_core_halves_what_it_shortens_and_copies_keep_the_base() -> None:
    given = {
        "in_flight": 8,
        "base_ms": 30.0,
        "per_request_ms": 1.25,
        "kept_ms": 10.0,
        "talk_base_ms": 1.0,
        "talk_request_ms": 0.125,
    }
    layouts = MODELS["layouts"].function
    steps = {
        layout: layouts(layout=layout, **given)["step_ms"]
        for layout in ("one core", "two threads", "tensor parallel", "two copies")
    }
    assert steps == {
        "one core": 40.0,
        "two threads": 25.0,
        "tensor parallel": 27.0,
        "two copies": 35.0,
    }
    assert layouts(layout="two copies", **given)["times"] == 40 / 35
    assert layouts(layout="two copies", **given | {"in_flight": 1})["step_ms"] == 31.25


def test_a_pool_is_whole_blocks_of_what_the_fullest_process_keeps() -> None:
    """One GiB; a token is 2 x 12 layers x 4 heads x 64 x 4 B = 24,576 B, a block 3 MiB: 341."""
    pool = MODELS["pool"].function
    given = {"memory_gib": 1, "layers": 12, "kv_heads": 4}
    found = {
        layout: pool(layout=layout, **given)["pool_tokens"]
        for layout in ("one copy", "tensor parallel", "pipeline", "two copies")
    }
    assert found == {
        "one copy": 341 * 128,
        "tensor parallel": 682 * 128,
        "pipeline": 409 * 128,
        "two copies": 682 * 128,
    }
