import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.load.http1 import Framing

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n7;note=x\r\n0\r\n\r\nab\r\n0\r\nTrailer: 1\r\n\r\n"
)
SIZED = b"HTTP/1.1 429 Too Many\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"


@given(st.sets(st.integers(1, len(CHUNKED) - 1)))
def test_a_chunked_body_ends_where_it_ends_however_it_is_cut(cuts: set[int]) -> None:
    framing = Framing(collect_spans=True)
    edges = [0, *sorted(cuts), len(CHUNKED)]
    parts = [CHUNKED[a:b] for a, b in itertools.pairwise(edges)]
    assert [framing.feed(part) for part in parts] == [False] * (len(parts) - 1) + [True]
    assert framing.status == 200
    assert framing.content_type == "text/event-stream"
    assert framing.keep_alive
    # The second chunk holds the very bytes that end a body: only the framing tells them apart.
    assert b"".join(CHUNKED[a:b] for a, b in framing.spans or []) == b"hello0\r\n\r\nab"


def test_a_sized_body_ends_with_its_size() -> None:
    framing = Framing(collect_spans=True)
    assert not framing.feed(SIZED[:-1])
    assert framing.feed(SIZED[-1:])
    assert (framing.status, framing.keep_alive, framing.until_close) == (429, False, False)
    assert framing.spans == [(len(SIZED) - 5, len(SIZED) - 1), (len(SIZED) - 1, len(SIZED))]


def test_a_body_without_a_size_ends_with_the_connection() -> None:
    framing = Framing(collect_spans=True)
    assert not framing.feed(b"HTTP/1.1 200 OK\r\n\r\nab")
    assert framing.until_close
    assert framing.spans == [(19, 21)]


@pytest.mark.parametrize("data", [b"SSH-2.0-x\r\n\r\n", CHUNKED[:90] + b"zz\r\n" + CHUNKED[90:]])
def test_bytes_that_are_no_http_raise(data: bytes) -> None:
    with pytest.raises(ValueError):
        Framing().feed(data)
