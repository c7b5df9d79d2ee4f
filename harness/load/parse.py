"""From the raw bytes of one answer to the row of the recording: tokens, times, counts, error.

Runs after the measured window, in the parent process. The traps it knows: a role-only first chunk
is no token; several tokens come in one chunk and several chunks in one read; an empty text can be a
token (engines hold back an unfinished character); a 200 without tokens is no success.
"""

import json
import math
from dataclasses import dataclass, field
from operator import index
from typing import Any

from harness.load.clock import Clock
from harness.load.http1 import Framing
from harness.load.spool import RawRequest
from harness.load.sse import Event, events

MAX_GAP = 1e5  # of two logprobs; vLLM's lowest is -9999
NOT_A_CHUNK = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """Fields as in table `request`. token_text, token_gap: None where no logprobs came; one gap is
    None where the other likely token has the same text. user_lag_ns: by how much the user-space
    stamp of each read was later than the kernel's; unstamped_reads: reads without a kernel stamp.
    """

    request_id: int
    phase: str
    slot: int
    scheduled_ns: int
    sent_ns: int | None
    first_byte_ns: int | None
    first_token_ns: int | None
    first_answer_ns: int | None
    last_token_ns: int | None
    ended_ns: int
    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    client_output_tokens: int
    chunk_offset_ns: list[int]
    chunk_tokens: list[int]
    chunk_shared: list[bool]
    finish_reason: str | None
    http_status: int | None
    error: str | None
    output_text: str
    token_text: list[str] | None
    token_gap: list[float | None] | None
    user_lag_ns: list[int]
    unstamped_reads: int


@dataclass(slots=True)
class _Chunk:
    """One event as a completion chunk. has_text: some token text, of the answer or of reasoning."""

    event: Event
    answer: str
    has_text: bool
    has_choice: bool
    counted: int | None  # completion tokens so far, where this chunk carries a usage


@dataclass(slots=True)
class _Answer:
    """What the events of one answer said, gathered in order."""

    chunks: list[_Chunk] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    token_text: list[str] = field(default_factory=list)
    token_gap: list[float | None] = field(default_factory=list)
    finish_reason: str | None = None
    done: bool = False
    fault: str | None = None


def parse_request(raw: RawRequest, clock: Clock) -> ParsedRequest:
    """Never raises on what a server sent: what is wrong with it is in .error."""
    stamps, lags = _stamps(raw, clock)
    framing, fault = _frame(raw.data)
    answer = _Answer()
    if framing.status == 200 and fault is None:
        spans = framing.spans or []
        body = b"".join(raw.data[start:end] for start, end in spans)
        _read_events(answer, body, spans, raw)
    tokens = _token_chunks(answer)
    error = raw.error or fault or _status_error(framing, raw.data) or answer.fault
    error = error or _what_is_missing(framing, answer, bool(tokens))
    times = [stamps[chunk.event.read] for chunk, _ in tokens]
    answers = _answer_times(tokens, times)
    counts = [count for _, count in tokens]
    known = None not in counts
    details = answer.usage.get("prompt_tokens_details") or {}
    return ParsedRequest(
        request_id=raw.request_id,
        phase=raw.phase,
        slot=raw.slot,
        scheduled_ns=raw.scheduled_ns,
        sent_ns=raw.sent_ns,
        first_byte_ns=stamps[0] if stamps else None,
        first_token_ns=times[0] if times else None,
        first_answer_ns=answers[0] if answers else None,
        last_token_ns=times[-1] if times else None,
        ended_ns=stamps[-1] if stamps and not raw.error else raw.ended_ns,
        prompt_tokens=answer.usage.get("prompt_tokens"),
        cached_tokens=details.get("cached_tokens"),
        output_tokens=answer.usage.get("completion_tokens"),
        client_output_tokens=sum(c for c in counts if c) if known else len(tokens),
        chunk_offset_ns=[time - (raw.sent_ns or 0) for time in times],
        chunk_tokens=[c for c in counts if c is not None] if known else [],
        chunk_shared=[chunk.event.shared for chunk, _ in tokens],
        finish_reason=answer.finish_reason,
        http_status=framing.status,
        error=error,
        output_text=_valid("".join(chunk.answer for chunk in answer.chunks)),
        token_text=answer.token_text or None,
        token_gap=answer.token_gap or None,
        user_lag_ns=lags,
        unstamped_reads=len(stamps) - len(lags),
    )


def _valid(text: str) -> str:
    """A lone surrogate is valid JSON and no valid text."""
    return text.encode("utf-8", "replace").decode()


def _answer_times(tokens: list[tuple["_Chunk", int | None]], times: list[int]) -> list[int]:
    """The arrivals of answer tokens: all of them, unless some chunk carries reasoning alone."""
    if all(chunk.answer or not chunk.has_text for chunk, _ in tokens):
        return times
    return [time for (chunk, _), time in zip(tokens, times, strict=True) if chunk.answer]


def _stamps(raw: RawRequest, clock: Clock) -> tuple[list[int], list[int]]:
    """The arrival of each read, and the user-space lag of those that the kernel stamped.

    The kernel stamps before user space reads, so user space's own stamp is an upper bound. It
    stands in where the kernel gave none, or where the wall clock was stepped.
    """
    stamps, lags = [], []
    for user_ns, kernel_ns in zip(raw.read_user_ns, raw.read_kernel_ns, strict=True):
        stamp = clock.to_mono(kernel_ns, user_ns) if kernel_ns else None
        stamps.append(user_ns if stamp is None else min(stamp, user_ns))
        if stamp is not None:
            lags.append(user_ns - stamps[-1])
    return stamps, lags


def _frame(data: bytes) -> tuple[Framing, str | None]:
    framing = Framing(collect_spans=True)
    try:
        framing.feed(data)
    except ValueError as fault:
        return framing, f"bad HTTP: {fault}"
    return framing, None


def _status_error(framing: Framing, data: bytes) -> str | None:
    """An answer that is no stream: its status and the beginning of what it says."""
    if framing.status is None or (
        framing.status == 200 and not framing.content_type.startswith("application/json")
    ):
        return None
    body = b"".join(data[start:end] for start, end in framing.spans or [])
    return f"HTTP {framing.status}: {body.decode('utf-8', 'replace')[:200]}".strip()


def _what_is_missing(framing: Framing, answer: _Answer, has_tokens: bool) -> str | None:
    if not framing.complete and not (framing.until_close and answer.done):
        return "stream cut"
    if not has_tokens:
        return "empty stream"
    if answer.finish_reason is None:
        return "no finish reason"
    if not answer.usage.get("completion_tokens"):
        return "no usage"
    return None


def _read_events(
    answer: _Answer, body: bytes, spans: list[tuple[int, int]], raw: RawRequest
) -> None:
    for event in events(body, spans, raw.read_bytes):
        if event.data.strip() == b"[DONE]":
            answer.done = True
            continue
        try:
            message = json.loads(event.data)
        except (ValueError, RecursionError):
            answer.fault = f"bad JSON in stream: {event.data.decode('utf-8', 'replace')[:80]}"
            return
        if isinstance(message, dict) and message.get("error"):
            answer.fault = f"server error in stream: {json.dumps(message['error'])[:200]}"
            return
        try:
            _read_chunk(answer, event, message)
        except NOT_A_CHUNK:
            answer.fault = f"not a completion chunk: {event.data.decode('utf-8', 'replace')[:80]}"
            return


def _read_chunk(answer: _Answer, event: Event, message: dict[str, Any]) -> None:
    usage = message.get("usage")
    if usage:
        _check_usage(usage)
    choice: dict[str, Any] = next(iter(message.get("choices") or []), {})
    delta = choice.get("delta") or {}
    text = "" + (choice.get("text") or delta.get("content") or "")
    thought = delta.get("reasoning_content") or delta.get("reasoning")
    answer.finish_reason = choice.get("finish_reason") or answer.finish_reason
    answer.usage = usage or answer.usage
    if (choice.get("logprobs") or {}).get("tokens"):
        _read_logprobs(answer, choice["logprobs"])
    counted = index(usage["completion_tokens"]) if usage else None
    answer.chunks.append(_Chunk(event, text, bool(text or thought), bool(choice), counted))


def _read_logprobs(answer: _Answer, logprobs: dict[str, Any]) -> None:
    """The tokens of a completion chunk, and by how much each was likelier than the runner-up."""
    tops = logprobs.get("top_logprobs") or [None] * len(logprobs["tokens"])
    for token, chosen, top in zip(
        logprobs["tokens"], logprobs["token_logprobs"], tops, strict=True
    ):
        others = [value for text, value in (top or {}).items() if text != token]
        gap = chosen - max(others) if others else math.nan
        answer.token_text.append(_valid(token))
        answer.token_gap.append(gap if abs(gap) <= MAX_GAP else None)


def _check_usage(usage: Any) -> None:
    """Raises TypeError where a usage is not the counts that it should be."""
    details = usage.get("prompt_tokens_details") or {}
    counts = (usage["completion_tokens"], usage.get("prompt_tokens"), details.get("cached_tokens"))
    for count in counts:
        if count is not None:
            index(count)


def _token_chunks(answer: _Answer) -> list[tuple[_Chunk, int | None]]:
    """The chunks that carry tokens, and how many; None where that can't be known."""
    texts = [chunk for chunk in answer.chunks if chunk.has_text]
    counted = next((c for c in answer.chunks if c.counted and c.has_choice), None)
    if counted and (not texts or answer.chunks.index(counted) <= answer.chunks.index(texts[0])):
        return _by_running_usage(answer.chunks)
    one_each = len(texts) == answer.usage.get("completion_tokens")
    return [(chunk, 1 if one_each else None) for chunk in texts]


def _by_running_usage(chunks: list[_Chunk]) -> list[tuple[_Chunk, int | None]]:
    """A chunk carries the tokens by which the server's count rises. A text chunk without a usage
    (SGLang's last one) gets what the next count adds, where that chunk has no text itself."""
    found: list[tuple[_Chunk, int | None]] = []
    waiting: list[_Chunk] = []  # text chunks since the last count
    seen = 0
    for chunk in chunks:
        if chunk.counted is None:
            waiting += [chunk] if chunk.has_text else []
            continue
        rise, seen = chunk.counted - seen, max(seen, chunk.counted)
        if rise > 0 and (waiting or chunk.has_choice):
            carriers = waiting + ([chunk] if chunk.has_text or not waiting else [])
            each = rise if len(carriers) == 1 else 1 if rise == len(carriers) else None
            found += [(carrier, each) for carrier in carriers]
        waiting = []
    return found + [(chunk, None) for chunk in waiting]
