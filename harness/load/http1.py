"""HTTP/1.1 framing of one answer: where its body lies, and where it ends.

Fed read by read while a stream comes in (does it end here?), and again as a whole by the parser
(which bytes are body?), so that both agree. It never looks into the body.
"""


class Framing:
    """The state of one answer. feed() raises ValueError where the bytes are not HTTP/1.1.

    spans: byte ranges of the body within all bytes fed, collected only where asked for.
    """

    def __init__(self, collect_spans: bool = False) -> None:
        self.status: int | None = None
        self.content_type = ""
        self.chunked = False
        self.keep_alive = True
        self.complete = False
        self.spans: list[tuple[int, int]] | None = [] if collect_spans else None
        self._base = 0  # bytes fed before this read
        self._head = b""
        self._line = b""  # a chunk-size line that a read cut in two
        self._left: int | None = None  # body bytes still to come of this chunk or body; None: EOF
        self._last = False  # the zero-size chunk has come

    @property
    def until_close(self) -> bool:
        """The answer has neither a length nor chunks: it ends where the server closes."""
        return self.status is not None and self._left is None

    def feed(self, data: bytes) -> bool:
        """Takes the next read; True when the answer is complete."""
        at = 0 if self.status is not None else self._read_head(data)
        if self.status is not None:
            self.complete = self._chunks(data, at) if self.chunked else self._plain(data, at)
        self._base += len(data)
        return self.complete

    def _read_head(self, data: bytes) -> int:
        before = len(self._head)
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            return 0
        first, *lines = self._head[:end].decode("latin-1").split("\r\n")
        if not first.startswith("HTTP/1."):
            raise ValueError(f"not an HTTP/1.1 answer: {first[:40]!r}")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        self.content_type = headers.get("content-type", "")
        self.chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        length = headers.get("content-length")
        self._left = 0 if self.chunked else int(length) if length is not None else None
        self.keep_alive = headers.get("connection", "").lower() != "close"
        status = first.split(" ", 2)[1:2]
        if not status:
            raise ValueError(f"no status in {first[:40]!r}")
        self.status = int(status[0])
        return end + 4 - before

    def _plain(self, data: bytes, at: int) -> bool:
        taken = len(data) - at if self._left is None else min(self._left, len(data) - at)
        self._span(at, taken)
        if self._left is None:
            return False  # ends with the connection
        self._left -= taken
        return self._left == 0

    def _chunks(self, data: bytes, at: int) -> bool:
        size = len(data)
        left = self._left or 0
        while at < size:
            if left:
                taken = min(left, size - at)
                self._span(at, taken)
                at += taken
                left -= taken
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._line += data[at:]
                break
            line = (self._line + data[at:end]).strip()
            self._line = b""
            at = end + 1
            if self._last and not line:
                return True
            if line and not self._last:  # an empty line here is the end of the chunk before
                left = int(line.partition(b";")[0], 16)
                if left < 0:
                    raise ValueError(f"a chunk of size {left}")
                self._last = left == 0
        self._left = left
        return False

    def _span(self, at: int, taken: int) -> None:
        if self.spans is not None and taken:
            self.spans.append((self._base + at, self._base + at + taken))
