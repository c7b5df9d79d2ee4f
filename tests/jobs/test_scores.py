"""The job of quality: what a row says of a token, on distributions that are known."""

import math

import pytest

from harness.jobs_run import SCRIPTS
from tests.inside import inside

pytestmark = [pytest.mark.engines, pytest.mark.timeout(120)]


def test_a_row_holds_log_probabilities_and_the_divergence_over_the_whole_vocabulary() -> None:
    """Reference (1/2, 1/4, 1/4), variant (1/4, 1/2, 1/4): the divergence is ln 2 / 4, and the best
    tokens differ."""
    code = """
import json, torch
from scores import compared, parse
reference = torch.tensor([[0.5, 0.25, 0.25]]).log()
scored = torch.tensor([[0.25, 0.5, 0.25]]).log()
(row,) = compared(scored, reference, [9, 1])
asked = parse("name=folder,float32,fp8,no-amx,32")
print(json.dumps([row, [asked.name, asked.folder, asked.dtype, asked.kv, asked.amx, asked.pieces]]))
"""
    row, asked = inside("vllm-cpu", SCRIPTS, code)
    assert (row["position"], row["token_id"], row["top1"]) == (1, 1, False)
    assert row["logprob"] == pytest.approx(math.log(0.5))
    assert row["reference_logprob"] == pytest.approx(math.log(0.25))
    assert row["kl_nats"] == pytest.approx(math.log(2) / 4, rel=1e-5)
    assert asked == ["name", "folder", "float32", "fp8", False, 32]
