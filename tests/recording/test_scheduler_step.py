"""The view of scheduler steps, on real log lines of both engines and on lines that are none."""

import pytest

from harness.recording.store import Recording
from tests.recording.conftest import MS, cell

VLLM = (
    "(APIServer pid=1) INFO 11-30 20:32:39 [loggers.py:199] Engine 000: Iteration(36): 2 context"
    " requests, 61 context tokens, 3 generation requests, 3 generation tokens, iteration elapsed"
    " time: 195.82 ms, CPU KV cache usage: 2.8%"
)
PREFILL = (
    "[2026-11-30 20:43:36] Prefill batch, #new-seq: 2, #new-token: 252, #cached-token: 16, token"
    " usage: 0.02, #running-req: 4, #queue-req: 1, #pending-token: 896, cpu graph: False, input"
    " throughput (token/s): 74.25"
)
DECODE = (
    "[2026-11-30 20:43:38] Decode batch, #running-req: 6, #token: 1350, token usage: 0.06, cpu"
    " graph: False, gen throughput (token/s): 0.17, #queue-req: 3"
)
OTHERS = (
    "(APIServer pid=1) INFO 11-30 20:32:45 [loggers.py:335] Engine 000: Avg prompt throughput:"
    " 103.6 tokens/s, Avg generation throughput: 26.5 tokens/s, Running: 0 reqs, Waiting: 0 reqs,"
    " CPU KV cache usage: 0.0%",
    "KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: 243",
)
ASK = (
    "SELECT kind, prefill_requests, prefill_tokens, decode_requests, decode_tokens, took_ms,"
    " kv_used_frac, cached_tokens, waiting, pending_tokens FROM scheduler_step"
    " WHERE run_id = ? ORDER BY t_ns"
)


@pytest.fixture
def logged(recording: Recording) -> Recording:
    """Runs 1 vLLM, 2 SGLang, 3 SGLang mixing: a line each second from the first, in this order."""
    run = {"session_id": 1, "model_id": "m", "env": {}, "started_ns": 0}
    runs = [
        {"run_id": 1, "engine": "vllm", "variant": "vllm", "argv": ["vllm"]},
        {"run_id": 2, "engine": "sglang", "variant": "sglang", "argv": ["python"]},
        {
            "run_id": 3,
            "engine": "sglang",
            "variant": "mixed",
            "argv": ["x", "--enable-mixed-chunk"],
        },
    ]
    lines = {1: [OTHERS[0], VLLM], 2: [PREFILL, OTHERS[1], DECODE], 3: [PREFILL, DECODE]}
    with recording.transaction():
        recording.insert("engine_run", [run | each for each in runs])
        recording.insert("cell", [cell(1, run_id=2, started_ns=2_500 * MS)])
        recording.insert(
            "log_line",
            [
                {"run_id": run_id, "t_ns": second * 1_000 * MS, "line": line}
                for run_id, said in lines.items()
                for second, line in enumerate(said, start=1)
            ],
        )
    return recording


def test_vllm_has_one_kind_of_step_and_prints_its_time(logged: Recording) -> None:
    found = logged.con.execute(ASK, [1]).fetchall()
    assert found == [("step", 2, 61, 3, 3, 195.82, pytest.approx(0.028), None, None, None)]


def test_sglang_runs_prompts_or_answers(logged: Recording) -> None:
    """The first line has none before it; the second came two seconds after it."""
    assert logged.con.execute(ASK, [2]).fetchall() == [
        ("prefill", 2, 252, 0, 0, None, 0.02, 16, 1, 896),
        ("decode", 0, 0, 6, 6, 2_000.0, 0.06, None, 3, None),
    ]


def test_a_prefill_that_mixes_computes_the_running_answers_too(logged: Recording) -> None:
    found = logged.con.execute(ASK, [3]).fetchall()
    assert [row[:5] for row in found] == [("prefill", 2, 252, 4, 4), ("decode", 0, 0, 6, 6)]


def test_a_line_belongs_to_the_cell_that_began_last_before_it(logged: Recording) -> None:
    ask = "SELECT cell_id FROM scheduler_step WHERE run_id = 2 ORDER BY t_ns"
    assert logged.con.execute(ask).fetchall() == [(None,), (1,)]
