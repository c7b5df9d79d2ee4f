import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.load.parse import parse_request
from tests.load.answers import (
    CLOCK,
    DONE,
    END,
    HEAD,
    delta,
    event,
    frame,
    parse,
    raw,
    text,
    total,
    usage,
)


def test_a_stream_of_one_token_a_read() -> None:
    got = parse(
        HEAD,  # 100
        frame(text(" a")),  # 200
        frame(text(" b")),  # 300
        frame(text(" c", finish="length")),  # 400
        frame(total(3)),  # 500
        frame(DONE) + END,  # 600
    )
    assert got.error is None
    assert got.http_status == 200
    assert got.first_byte_ns == 100
    assert got.first_token_ns == got.first_answer_ns == 200
    assert got.last_token_ns == 400
    assert got.ended_ns == 600
    assert got.chunk_offset_ns == [150, 250, 350]
    assert got.chunk_tokens == [1, 1, 1]
    assert got.chunk_shared == [False, False, False]
    assert (got.prompt_tokens, got.cached_tokens) == (3, 2)
    assert (got.output_tokens, got.client_output_tokens) == (3, 3)
    assert got.finish_reason == "length"
    assert got.output_text == " a b c"
    assert got.user_lag_ns == [7] * 6
    assert got.unstamped_reads == 0


def test_chunks_that_share_a_read_have_its_time_and_all_but_the_last_are_marked() -> None:
    got = parse(
        HEAD + frame(text("a")) + frame(text("b")),  # 100: a is shared, b is its last event
        frame(text("c")) + frame(text("d", finish="stop"))[:20],  # 200: bytes of d follow c
        frame(text("d", finish="stop"))[20:],  # 300
        frame(total(4)) + frame(DONE) + END,
    )
    assert got.error is None
    assert got.chunk_offset_ns == [50, 50, 150, 250]
    assert got.chunk_shared == [True, False, True, False]


def test_an_event_arrives_with_its_last_byte() -> None:
    ende = frame(text("é", finish="stop"))
    cut = ende.index(b"\xc3") + 1  # inside the character
    got = parse(HEAD, ende[:cut], ende[cut:-4], ende[-4:], frame(total(1)) + END)
    # Read 3 ends before the event's second newline; read 4 brings it, and the chunk's own CRLF.
    assert got.chunk_offset_ns == [350]
    assert got.output_text == "é"
    assert got.error is None  # ended by the terminator, without [DONE]


def test_role_and_usage_chunks_carry_no_token() -> None:
    got = parse(
        HEAD + frame(delta(role="assistant", content="")),  # 100
        frame(delta(content="Hi")),  # 200
        frame(delta(content=None, finish="stop")),  # 300
        frame(total(1)),
        frame(DONE) + END,
    )
    assert got.first_byte_ns == 100
    assert got.first_token_ns == got.last_token_ns == 200
    assert got.client_output_tokens == 1
    assert got.error is None


def test_a_lone_surrogate_becomes_text_that_can_be_stored() -> None:
    chunk = b'data: {"choices": [{"text": "a\\ud800", "finish_reason": "stop"}]}\n\n'
    got = parse(HEAD, frame(chunk), frame(total(1)) + frame(DONE) + END)
    assert got.error is None
    assert got.output_text == "a?"


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_a_token_and_no_answer(name: str) -> None:
    got = parse(
        HEAD,
        frame(delta(**{name: "hm"})),  # 200
        frame(delta(content="yes", finish="stop")),  # 300
        frame(total(2)) + frame(DONE) + END,
    )
    assert (got.first_token_ns, got.first_answer_ns) == (200, 300)
    assert got.output_text == "yes"
    assert got.chunk_tokens == [1, 1]


def test_with_running_usage_a_token_is_where_the_count_rises() -> None:
    got = parse(
        HEAD + frame(text("", counted=0)),  # 100: no token yet
        frame(text("", counted=1)),  # 200: half a character is held back: a token
        frame(text("é", counted=2)),  # 300
        frame(text(" b c d", counted=5)),  # 400: three tokens
        frame(text("", counted=5, finish="length")),  # 500: no token
        frame(total(5)) + frame(DONE) + END,
    )
    assert got.chunk_offset_ns == [150, 250, 350]
    assert got.chunk_tokens == [1, 1, 3]
    assert got.client_output_tokens == got.output_tokens == 5
    assert got.first_token_ns == got.first_answer_ns == 200


def test_a_last_chunk_without_running_usage_gets_the_rest() -> None:
    got = parse(
        HEAD,
        frame(text("a", counted=1)),
        frame(text(" b c", finish="length")),
        frame(total(3)) + frame(DONE) + END,
    )
    assert got.chunk_tokens == [1, 2]
    assert got.chunk_offset_ns == [150, 250]


def test_without_running_usage_unequal_counts_leave_the_tokens_open() -> None:
    got = parse(
        HEAD,
        frame(text(" a b")),
        frame(text(" c", finish="stop")),
        frame(total(3)) + frame(DONE) + END,
    )
    assert got.error is None
    assert got.chunk_tokens == []
    assert got.chunk_offset_ns == [150, 250]
    assert (got.client_output_tokens, got.output_tokens) == (2, 3)


def test_a_usage_on_the_finish_chunk_alone_is_no_running_usage() -> None:
    got = parse(HEAD, frame(text("a")), frame(text("", counted=1, finish="stop")), END)
    assert got.chunk_tokens == [1]
    assert got.chunk_offset_ns == [150]


def test_a_read_without_a_kernel_stamp_has_the_user_stamp() -> None:
    reads = [HEAD, frame(text("a", finish="stop")), frame(total(1)) + END]
    got = parse_request(replace(raw(reads), read_kernel_ns=[0, 0, 0]), CLOCK)
    assert got.first_token_ns == 207
    assert got.unstamped_reads == 3
    assert got.user_lag_ns == []


def test_a_kernel_stamp_after_the_user_stamp_is_not_believed() -> None:
    reads = [HEAD, frame(text("a", finish="stop")), frame(total(1)) + END]
    stepped = [at + 10**9 for at in raw(reads).read_kernel_ns]
    got = parse_request(replace(raw(reads), read_kernel_ns=stepped), CLOCK)
    assert got.first_token_ns == 207


def scored(tokens: list[str], chosen: list[float], tops: Any, **rest: Any) -> bytes:
    """One completions chunk with the log-probabilities of its tokens."""
    logprobs = {"tokens": tokens, "token_logprobs": chosen, "top_logprobs": tops}
    choice = {"text": "".join(tokens), "finish_reason": None, "logprobs": logprobs}
    return event({"choices": [choice | rest]})


def test_token_texts_and_gaps_as_vllm_sends_them() -> None:
    got = parse(
        HEAD,
        # The chosen token and two more; the half of a character has no text yet.
        frame(scored([" a"], [-0.25], [{" a": -0.25, " b": -1.75, " c": -3.0}])),
        frame(scored([""], [-0.5], [{"": -0.5, " d": -0.5625}])),
        frame(scored(["é", " f"], [-1.0, -0.125], [{"é": -1.0, " x": -2.0}, {" f": -0.125}])),
        frame(text("", finish="length")) + frame(total(4)) + frame(DONE) + END,
    )
    assert got.error is None
    assert got.token_text == [" a", "", "é", " f"]
    assert got.token_gap == [1.5, 0.0625, 1.0, None]  # the last one's rival has its text
    assert got.output_text == " aé f"


def test_token_texts_and_gaps_as_sglang_sends_them() -> None:
    got = parse(
        HEAD,
        frame(scored([" a"], [-0.25], [{" a": -0.25, " b": -1.75}])),
        # A tie, and the byte of a character as Latin-1; the last chunk brings text alone.
        frame(scored(["Ã"], [-0.5], [{" d": -0.5, "Ã": -0.5}], text="")),
        frame(scored([], [], [], text="é", finish_reason="length")) + frame(total(2)) + END,
    )
    assert got.error is None
    assert got.token_text == [" a", "Ã"]
    assert got.token_gap == [1.5, 0.0]
    assert got.output_text == " aé"


def test_without_logprobs_there_are_no_token_texts() -> None:
    got = parse(HEAD, frame(text("a", finish="stop")), frame(total(1)) + frame(DONE) + END)
    assert got.token_text is None and got.token_gap is None


@pytest.mark.parametrize(
    ("chosen", "tops", "gaps"),
    [
        ([-0.5], None, [None]),
        ([None], [None], [None]),
        ([-0.5], [{"b": float("nan")}], [None]),
        ([-0.5], [{"b": float("-inf")}], [None]),
        (["x"], [{"b": -1.0}], "fault"),
        ([-0.5], [{"b": 10**400}], "fault"),
        ([-0.5, -0.5], [{"b": -1.0}], "fault"),
        ([-0.5], [["b"]], "fault"),
    ],
)
def test_logprobs_that_are_none_are_no_gap_and_nonsense_is_a_fault(
    chosen: Any, tops: Any, gaps: Any
) -> None:
    chunk = frame(scored(["a"], chosen, tops, finish_reason="stop"))
    got = parse(HEAD, chunk, frame(total(1)) + frame(DONE) + END)
    if gaps == "fault":
        assert (got.error or "").startswith("not a completion chunk")
    else:
        assert got.error is None
        assert (got.token_text, got.token_gap) == (["a"], gaps)


A = frame(text("a"))
LAST = frame(text("b", finish="stop"))
JSON_HEAD = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
CLOSING = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (HEAD + A + LAST + frame(total(2)) + frame(DONE) + END, None),
        (HEAD + A + LAST + frame(DONE) + END, "no usage"),
        (HEAD + A + frame(total(1)) + frame(DONE) + END, "no finish reason"),
        (HEAD + frame(DONE) + END, "empty stream"),
        (HEAD + END, "empty stream"),
        (HEAD + frame(delta(role="assistant")) + frame(total(0)) + END, "empty stream"),
        (HEAD + A + LAST + frame(total(2)) + frame(DONE), "stream cut"),
        (HEAD + A, "stream cut"),
        (b"HTTP/1.1 200 OK\r\nContent-", "stream cut"),
        (CLOSING + text("a", finish="stop") + total(1) + DONE, None),
        (CLOSING + text("a", finish="stop") + total(1), "stream cut"),
        (HEAD + A + frame(b'data: {"cho') + END, 'bad JSON in stream: {"cho'),
        (HEAD + frame(event([1])) + END, "not a completion chunk: [1]"),
        (HEAD + frame(event({"choices": 3})) + END, 'not a completion chunk: {"choices": 3}'),
        (
            HEAD + A + frame(event({"error": {"code": 500}})) + END,
            'server error in stream: {"code": 500}',
        ),
        (JSON_HEAD % (b"429 Slow", 12, b'{"error": 1}'), 'HTTP 429: {"error": 1}'),
        (JSON_HEAD % (b"200 OK", 2, b"{}"), "HTTP 200: {}"),
        (JSON_HEAD % (b"500 Oh", 300, b"x" * 300), "HTTP 500: " + "x" * 200),
        (b"SSH-2.0\r\n\r\n", "bad HTTP: not an HTTP/1.1 answer: 'SSH-2.0'"),
        (b"HTTP/1.1\r\n\r\n", "bad HTTP: no status in 'HTTP/1.1'"),
        (HEAD + b"-4\r\nabcd\r\n", "bad HTTP: a chunk of size -4"),
        (HEAD + frame(event({"usage": [1]})) + END, 'not a completion chunk: {"usage": [1]}'),
        (
            HEAD + frame(event({"usage": {"completion_tokens": "3"}})) + END,
            'not a completion chunk: {"usage": {"completion_tokens": "3"}}',
        ),
        (
            HEAD
            + frame(event({"usage": {"completion_tokens": 1, "prompt_tokens_details": 5}}))
            + END,
            'not a completion chunk: {"usage": {"completion_tokens": 1, '
            '"prompt_tokens_details": 5}}',
        ),
        (
            HEAD + frame(b"data: " + b"[" * 200_000 + b"\n\n") + END,
            "bad JSON in stream: " + "[" * 80,
        ),
    ],
)
def test_every_failure_has_its_name(data: bytes, error: str | None) -> None:
    assert parse(data).error == error


def test_a_failure_of_the_transport_keeps_what_had_come() -> None:
    got = parse(HEAD, frame(text("a")), error="timeout")
    assert got.error == "timeout"
    assert got.first_token_ns == 200
    assert got.ended_ns == 9_999  # the time of the failure, not of the last read
    nothing = parse(error="connection refused")
    assert (nothing.error, nothing.http_status) == ("connection refused", None)
    assert nothing.first_byte_ns is None


EVENTS = [
    b": a comment\n\n",
    text("a", counted=1),
    text("é日", counted=3).replace(b"\n", b"\r\n"),
    b'data:{"choices":\ndata:[{"text":"x","finish_reason":"stop"}],\ndata: "usage":'
    + json.dumps(usage(4)["usage"]).encode()
    + b"}\n\n",
    total(4),
    DONE,
]
ANSWER = HEAD + frame(b"".join(EVENTS[:3])) + b"".join(frame(e) for e in EVENTS[3:]) + END
LAST_BYTES = [ANSWER.index(part) + len(part) - 1 for part in EVENTS[1:4]]


@given(st.sets(st.integers(1, len(ANSWER) - 1)))
def test_any_split_gives_the_same_answer_and_each_event_the_time_of_its_last_byte(
    cuts: set[int],
) -> None:
    edges = [0, *sorted(cuts), len(ANSWER)]
    reads = [ANSWER[a:b] for a, b in itertools.pairwise(edges)]
    got = parse(*reads)
    assert got.error is None
    assert got.output_text == "aé日x"
    assert got.chunk_tokens == [1, 2, 1]
    read_of = [sum(edge <= last for edge in edges) - 1 for last in LAST_BYTES]
    assert [offset + 50 for offset in got.chunk_offset_ns] == [100 * (r + 1) for r in read_of]
    # Exact where no other event's byte stands behind it in its read.
    next_event = [LAST_BYTES[0] + 1, ANSWER.index(EVENTS[3]), ANSWER.index(EVENTS[4])]
    assert got.chunk_shared == [
        first < edges[read + 1] for first, read in zip(next_event, read_of, strict=True)
    ]


@given(st.binary(max_size=200))
def test_no_bytes_make_the_parser_fail(data: bytes) -> None:
    assert parse(HEAD + frame(data or b"x") + END).error
    assert parse(b"HTTP/1.1 200 OK\r\n" + data).error
