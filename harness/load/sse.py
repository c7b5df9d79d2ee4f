"""Server-sent events of one answer, each with the read that brought its last byte."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

_BLANK_LINE = re.compile(rb"\r?\n\r?\n")


@dataclass(frozen=True, slots=True)
class Event:
    """One event. read: index of the read that held its last byte. shared: more of the body came in
    that same read, so its stamp, which is the last byte's, is an upper bound for this event."""

    data: bytes
    read: int
    shared: bool


class _Positions:
    """Body offset -> offset among all bytes -> read."""

    def __init__(self, spans: Sequence[tuple[int, int]], read_bytes: Sequence[int]) -> None:
        self._spans = spans
        self._starts = [0, *accumulate(end - start for start, end in spans)]
        self._read_ends = list(accumulate(read_bytes))

    def read_of(self, body_offset: int) -> int:
        span = bisect_right(self._starts, body_offset) - 1
        raw_offset = self._spans[span][0] + body_offset - self._starts[span]
        return bisect_right(self._read_ends, raw_offset)


def events(
    body: bytes, spans: Sequence[tuple[int, int]], read_bytes: Sequence[int]
) -> Iterator[Event]:
    """The events of a body that lies in spans of all bytes read. Comments and blank events are
    left out; an unfinished event at the end is given as it is."""
    positions = _Positions(spans, read_bytes)
    start = 0
    while start < len(body):
        blank = _BLANK_LINE.search(body, start)
        end = blank.end() if blank else len(body)
        data = _data(body[start : blank.start() if blank else end])
        if data is not None:
            read = positions.read_of(end - 1)
            shared = end < len(body) and positions.read_of(end) == read
            yield Event(data, read, shared)
        start = end


def _data(block: bytes) -> bytes | None:
    """The data lines of one event, joined as the standard says; None where it has none."""
    lines = [
        line[5:].removeprefix(b" ").removesuffix(b"\r")
        for line in block.split(b"\n")
        if line.startswith(b"data:")
    ]
    return b"\n".join(lines) if lines else None
