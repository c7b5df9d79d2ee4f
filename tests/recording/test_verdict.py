"""Each reason against a cell is found, named, and says how much."""

from typing import Any

from harness.load.parse import ParsedRequest
from harness.recording.verdict import Asked, judge

ASKED = Asked(prompt_tokens=8, output_tokens=4, min_requests=2)


def parsed(**changes: Any) -> ParsedRequest:
    values: dict[str, Any] = {
        "request_id": 1,
        "phase": "measured",
        "slot": 0,
        "scheduled_ns": 0,
        "sent_ns": 0,
        "http_status": 200,
        "first_byte_ns": 1,
        "first_token_ns": 2,
        "first_answer_ns": 2,
        "last_token_ns": 3,
        "ended_ns": 4,
        "prompt_tokens": 8,
        "cached_tokens": 0,
        "output_tokens": 4,
        "client_output_tokens": 4,
        "chunk_offset_ns": [1],
        "chunk_tokens": [4],
        "chunk_shared": [False],
        "finish_reason": "length",
        "error": None,
        "output_text": "",
        "user_lag_ns": [],
        "unstamped_reads": 0,
    }
    return ParsedRequest(**values | changes)


def test_equal_work_without_failures_is_valid() -> None:
    assert judge(ASKED, [parsed(), parsed(cached_tokens=None)], 0.5, True) == []


def test_each_reason_is_named() -> None:
    assert judge(ASKED, [parsed(), parsed(error="no usage")], 0.1, True) == [
        "errors: 1 of 2 failed, first: no usage"
    ]
    assert judge(ASKED, [parsed(), parsed(prompt_tokens=9)], 0.1, True) == [
        "prompt_length: 1 of 2 had 9 prompt tokens, not 8"
    ]
    assert judge(ASKED, [parsed(output_tokens=3), parsed()], 0.1, True) == [
        "output_length: 1 of 2 had 3 output tokens, not 4"
    ]
    assert judge(ASKED, [parsed(cached_tokens=6), parsed()], 0.1, True) == [
        "warm_cache: 1 of 2 prompts hit the cache, up to 6 tokens"
    ]
    assert judge(ASKED, [parsed(cached_tokens=2)] * 2, 0.1, True) == []
    with_template = Asked(prompt_tokens=8, output_tokens=4, min_requests=2, added_tokens=4)
    assert judge(with_template, [parsed(cached_tokens=6)] * 2, 0.1, True) == []
    assert judge(ASKED, [parsed(), parsed()], 0.1, True, ["watch_host: OSError()"]) == [
        "telemetry: watch_host: OSError()"
    ]
    assert judge(ASKED, [parsed(), parsed()], 0.81, True) == [
        "client_busy: the load process used 81% of its core"
    ]
    assert judge(ASKED, [parsed()], 0.1, False) == ["minimums: 1 of 2 requests, or ended too early"]
