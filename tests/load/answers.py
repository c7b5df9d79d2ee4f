"""Hand-made answers: bytes of a response, cut into reads with known stamps."""

import json
from collections.abc import Sequence
from typing import Any

from harness.load.clock import Anchor, Clock
from harness.load.parse import ParsedRequest, parse_request
from harness.load.spool import RawRequest

WALL_NS = 1_000_000  # wall clock minus monotonic clock in these tests
CLOCK = Clock([Anchor(0, WALL_NS, 0)])
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def frame(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def event(message: Any) -> bytes:
    text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    return f"data: {text}\n\n".encode()


def text(token: str, counted: int | None = None, finish: str | None = None) -> bytes:
    """One completions chunk; counted: the running usage it carries."""
    message: dict[str, Any] = {"choices": [{"text": token, "finish_reason": finish}]}
    return event(message | ({} if counted is None else usage(counted)))


def delta(finish: str | None = None, **fields: Any) -> bytes:
    """One chat chunk."""
    return event({"choices": [{"delta": fields, "finish_reason": finish}]})


def usage(completion_tokens: int) -> dict[str, Any]:
    cached = {"cached_tokens": 2}
    counts = {"prompt_tokens": 3, "completion_tokens": completion_tokens}
    return {"usage": {**counts, "prompt_tokens_details": cached}}


def total(completion_tokens: int) -> bytes:
    """The usage-only chunk at the end."""
    return event({"choices": [], **usage(completion_tokens)})


DONE = event("[DONE]")


def raw(reads: Sequence[bytes], error: str | None = None) -> RawRequest:
    """Sent at 50; read i arrives at 100 (i + 1) and is seen by user space 7 ns later."""
    arrivals = [100 * (i + 1) for i in range(len(reads))]
    return RawRequest(
        request_id=1,
        phase="measured",
        slot=0,
        scheduled_ns=40,
        sent_ns=50,
        ended_ns=9_999,
        error=error,
        read_user_ns=[at + 7 for at in arrivals],
        read_kernel_ns=[at + WALL_NS for at in arrivals],
        read_bytes=[len(read) for read in reads],
        data=b"".join(reads),
    )


def parse(*reads: bytes, error: str | None = None) -> ParsedRequest:
    return parse_request(raw(reads, error), CLOCK)
