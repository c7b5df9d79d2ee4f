"""Each tool's output files, cut down to two requests, and what is read from them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError
from harness.peers import outputs
from harness.peers.outputs import Seen
from harness.peers.tools import TOOLS


def put(folder: Path, name: str, *documents: Any) -> Path:
    folder.joinpath(name).write_text("\n".join(json.dumps(each) for each in documents))
    return folder


def test_the_number_stands_at_the_start_of_an_answer() -> None:
    assert outputs.number(" e17 token token") == "17"
    assert outputs.number("e4") == "4"
    assert outputs.number("token e17") == ""
    assert outputs.number(None) == ""


LISTED = {
    "generated_texts": [" e3 token token", ""],
    "errors": ["", "Never received a valid chunk"],
    "ttfts": [0.25, 0.0],
    "itls": [[0.02, 0.021], []],
    "output_lens": [3, 0],
    "mean_itl_ms": 20.5,
}


@pytest.mark.parametrize(
    ("read", "name"),
    [(outputs.read_vllm, "result.json"), (outputs.read_sglang, "result.jsonl")],
)
def test_lists_of_vllm_and_sglang(read: Any, name: str, tmp_path: Path) -> None:
    report = read(put(tmp_path, name, LISTED))
    assert report.seen == [
        Seen("3", True, 250_000_000, (20_000_000, 21_000_000), 41_000_000, 3),
        Seen("", False, None, (), 0, 0),
    ]
    assert report.token_gap_ms == 20.5


def test_guidellm_keeps_the_first_and_the_last_token(tmp_path: Path) -> None:
    times = {"request_start": 100.0, "first_token_iteration": 100.5, "last_token_iteration": 102.0}
    never = {"request_start": 100.0, "first_token_iteration": None, "last_token_iteration": None}
    good = {
        "response_id": "e7",
        "info": {"timings": times},
        "output_metrics": {"total_tokens": 4},
    }
    bad = {
        "response_id": None,
        "info": {"timings": never},
        "output_metrics": {"total_tokens": None},
    }
    mean = {"inter_token_latency_ms": {"successful": {"mean": 500.0}}}
    requests = {"successful": [good], "errored": [bad], "incomplete": []}
    put(tmp_path, "result.json", {"benchmarks": [{"requests": requests, "metrics": mean}]})
    report = outputs.read_guidellm(tmp_path)
    assert report.seen == [
        Seen("7", True, 500_000_000, None, 1_500_000_000, 4),
        Seen("", False, None, None, None, None),
    ]
    assert report.token_gap_ms == 500.0


def test_aiperf_is_matched_by_the_id_that_it_sent(tmp_path: Path) -> None:
    metrics = {
        "time_to_first_token": {"value": 54.25},
        "inter_chunk_latency": {"value": [20.0, 21.5]},
        "usage_completion_tokens": {"value": 3},
    }
    put(
        tmp_path,
        "profile_export.jsonl",
        {"metadata": {"x_request_id": "d25"}, "metrics": metrics, "error": None},
        {"metadata": {"x_request_id": "d26"}, "metrics": {}, "error": {"code": 500}},
    )
    put(tmp_path, "profile_export_aiperf.json", {"inter_token_latency": {"avg": 20.75}})
    report = outputs.read_aiperf(tmp_path)
    assert report.seen == [
        Seen("d25", True, 54_250_000, (20_000_000, 21_500_000), 41_500_000, 3),
        Seen("d26", False, None, (), 0, None),
    ]
    assert report.token_gap_ms == 20.75


def test_inference_perf_keeps_the_time_of_each_chunk(tmp_path: Path) -> None:
    metrics = {
        "chunk_times": [10.25, 10.5, 11.0],
        "response_chunks": [json.dumps({"id": "e9"}), "{}", "{}"],
        "server_usage": {"completion_tokens": 3},
        "output_tokens": 4,  # its own count; the server's comes first
    }
    put(
        tmp_path,
        "per_request_lifecycle_metrics.json",
        [
            {"start_time": 10.0, "info": {"response_metrics": metrics}, "error": None},
            {"start_time": 10.0, "info": {}, "error": {"error_type": "HTTP 500"}},
        ],
    )
    latency = {"successes": {"latency": {"inter_token_latency": {"mean": 0.375}}}}
    put(tmp_path, "summary_lifecycle_metrics.json", latency)
    report = outputs.read_inference_perf(tmp_path)
    assert report.seen == [
        Seen("9", True, 250_000_000, (250_000_000, 500_000_000), 750_000_000, 3),
        Seen("", False, None, (), None, None),
    ]
    assert report.token_gap_ms == 375.0


@pytest.mark.parametrize(
    ("place", "files", "message"),
    [
        (0, {"spool": ""}, "Token By Token: spool can't be read: ValueError"),
        (1, {"result.json": '{"errors": ['}, "vllm bench serve: result.json can't be read: JSON"),
        (1, {"result.json": '{"errors": []}'}, "result.json can't be read: KeyError: 'generated"),
        (2, {"result.jsonl": ""}, "sglang.bench_serving: result.jsonl can't be read: IndexError"),
        (3, {"result.json": '{"benchmarks": []}'}, "GuideLLM: result.json can't be read: Value"),
        (4, {"profile_export.jsonl": "[]"}, "AIPerf: profile_export.jsonl can't be read: TypeErr"),
        (4, {"profile_export.jsonl": ""}, "AIPerf: left no profile_export_aiperf.json"),
        (
            5,
            {
                "per_request_lifecycle_metrics.json": "[]",
                "summary_lifecycle_metrics.json": '{"successes": null}',
            },
            "inference-perf: summary_lifecycle_metrics.json can't be read: TypeError",
        ),
    ],
)
def test_what_cannot_be_read_is_named_by_tool_and_file(
    place: int, files: dict[str, str], message: str, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(HarnessError, match=re.escape(message)):
        TOOLS[place].report(tmp_path)


def test_a_tool_that_left_nothing_is_named_by_its_file(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"left no result\.json"):
        outputs.read_vllm(tmp_path)
