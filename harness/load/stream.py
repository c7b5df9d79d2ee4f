"""One slot's HTTP/1.1 connection: sends a body, keeps every read of the answer with its stamps.

The arrival time of a read is the kernel's (SO_TIMESTAMPNS through recvmsg), so it does not depend
on when Python got round to it: at 400 streams of 50 chunks/s user space is off by milliseconds at
p99, the kernel's stamp by 0.01 ms (`make bench` measures both). While a stream comes in, its bytes
are appended and nothing is parsed but the framing that tells its end.
"""

import socket
import ssl
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

import gevent
import gevent.hub
import gevent.socket

from harness.load.http1 import Framing

SO_TIMESTAMPNS = 35  # Linux; the 64-bit form (two 8-byte integers) on 64-bit machines
_READ_BYTES = 65536
MIN_SECRET_BYTES = 8
_TIMESPEC = struct.Struct("@qq")


class Exchange:
    """What one request gave: filled in while it runs. Fields as in spool.RawRequest."""

    __slots__ = ("data", "ended_ns", "error", "kernel_ns", "sent_ns", "sizes", "status", "user_ns")

    def __init__(self) -> None:
        self.sent_ns: int | None = None
        self.ended_ns = 0
        self.error: str | None = None
        self.status: int | None = None
        self.user_ns: list[int] = []
        self.kernel_ns: list[int] = []
        self.sizes: list[int] = []
        self.data = bytearray()


Take = Callable[[bytes, int], bool]  # one read and its stamp -> enough?


class _Plain:
    """A TCP socket whose recv() also returns the kernel's stamp of the last byte, or 0."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = gevent.socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError):  # not Linux: reads stay unstamped, and are counted as such
            self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._recvmsg = self._socket.recvmsg
        hub = gevent.get_hub()
        self._readable = hub.loop.io(self._socket.fileno(), 1)  # 1: read
        self._wait = hub.wait
        self.sendall = self._socket.sendall

    def close(self) -> None:
        self._readable.close()
        self._socket.close()

    def recv(self) -> tuple[bytes, int]:
        self._wait(self._readable)  # before the read: it would fail first, at 15 % more CPU a chunk
        return self._read()

    def pump(self, take: Take) -> None:
        """Gives take() each read as it comes, until it says that it has enough or the peer closed.

        The event loop reads by itself: waking a greenlet for each read costs a quarter more CPU a
        chunk at 200 streams, and half more at 600.
        """
        waiter = gevent.hub.Waiter()

        def ready() -> None:
            try:
                if take(*self._read()):
                    waiter.switch(None)
            except BaseException as fault:
                waiter.throw(fault)

        self._readable.start(ready)
        try:
            waiter.get()
        finally:
            self._readable.stop()

    def _read(self) -> tuple[bytes, int]:
        data, ancillary, _, _ = self._recvmsg(_READ_BYTES, 64)
        if not ancillary:
            return data, 0
        seconds, nanoseconds = _TIMESPEC.unpack_from(ancillary[0][2])
        return data, seconds * 1_000_000_000 + nanoseconds


class _Tls:
    """TLS over _Plain through memory buffers: SSLSocket has no recvmsg, and so no stamps."""

    def __init__(self, plain: _Plain, host: str) -> None:
        self._plain = plain
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=host)
        self.close = plain.close
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._flush()
                self._fill()
        self._flush()

    def _flush(self) -> None:
        if self._out.pending:
            self._plain.sendall(self._out.read())

    def _fill(self) -> int:
        data, stamp = self._plain.recv()
        self._in.write(data) if data else self._in.write_eof()
        return stamp

    def sendall(self, data: bytes) -> None:
        self._tls.write(data)
        self._flush()

    def recv(self) -> tuple[bytes, int]:
        """All that one read of the socket decrypts to; reads on where that is nothing yet."""
        while True:
            stamp = self._fill()
            data = b""
            try:
                while part := self._tls.read(_READ_BYTES):
                    data += part
                return data, stamp
            except ssl.SSLWantReadError:
                if data:
                    return data, stamp
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return data, stamp

    def pump(self, take: Take) -> None:
        while not take(*self.recv()):
            pass


class Connection:
    """Keep-alive connection of one slot to one URL. Needs no lock: a slot does one thing a time."""

    def __init__(self, url: str, api_key: str | None) -> None:
        parts = urlsplit(url)
        self._tls = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        # A shorter one could be a word of any answer: it is no secret, and stays.
        self._secret = api_key.encode() if api_key and len(api_key) >= MIN_SECRET_BYTES else b""
        key = f"Authorization: Bearer {api_key}\r\n" if api_key else ""
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._head = (
            f"POST {path} HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\n"
            f"Content-Type: application/json\r\nAccept: text/event-stream\r\n{key}Content-Length: "
        ).encode()
        self._socket: _Plain | _Tls | None = None

    def open(self) -> None:
        """Connects, unless connected. Raises OSError."""
        if self._socket is None:
            plain = _Plain(self._host, self._port)
            self._socket = _Tls(plain, self._host) if self._tls else plain

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def exchange(self, body: bytes, timeout_s: float) -> Exchange:
        """Sends one request and reads its answer to the end; every failure is in .error."""
        result = Exchange()
        message = b"%b%d\r\n\r\n%b" % (self._head, len(body), body)
        timer = gevent.Timeout.start_new(timeout_s)
        try:
            try:
                self._attempt(message, result)
            except _StaleError:
                self.close()
                self._attempt(message, result)
        except gevent.Timeout as fired:
            if fired is not timer:
                raise
            result.error = "timeout"
        except OSError as fault:
            result.error = _name(fault)
        except ValueError as fault:
            result.error = f"bad HTTP: {fault}"
        finally:
            timer.close()
        complete = result.error is None and result.user_ns
        result.ended_ns = result.user_ns[-1] if complete else time.monotonic_ns()
        if result.error:
            self.close()
        if self._secret and self._secret in result.data:  # a server may echo the key in its error
            result.data = result.data.replace(self._secret, b"*" * len(self._secret))
        return result

    def _attempt(self, message: bytes, result: Exchange) -> None:
        """One try. Raises _StaleError where a kept connection proves closed before any answer."""
        kept = self._socket is not None
        result.sent_ns = None
        try:
            self.open()
            assert self._socket is not None
            result.sent_ns = time.monotonic_ns()
            self._socket.sendall(message)
            self._receive(self._socket, result)
        except ConnectionError as fault:
            if kept and not result.user_ns:
                raise _StaleError from fault
            raise

    def _receive(self, source: _Plain | _Tls, result: Exchange) -> None:
        framing = Framing()
        now, feed = time.monotonic_ns, framing.feed
        users, kernels, sizes, data = result.user_ns, result.kernel_ns, result.sizes, result.data

        def take(part: bytes, stamp: int) -> bool:
            if not part:
                return True
            users.append(now())
            kernels.append(stamp)
            sizes.append(len(part))
            data.extend(part)
            return feed(part)

        source.pump(take)
        done = framing.complete
        result.status = framing.status
        if not done and not users:
            raise ConnectionResetError("closed without an answer")
        if not done and not framing.until_close:
            result.error = "stream cut"
        if not done or not framing.keep_alive:
            self.close()


class _StaleError(Exception):
    """The server had closed the kept connection between two requests."""


def _name(fault: OSError) -> str:
    if isinstance(fault, ConnectionRefusedError):
        return "connection refused"
    if isinstance(fault, ConnectionError):
        return "connection closed" if fault.errno is None else "connection reset"
    return fault.strerror or str(fault)
