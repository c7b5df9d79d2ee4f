"""What really happened, kept apart from the stream: for clients that keep no bytes of it.

With --keep-truth 1 the emulator remembers of every request when it arrived and when each chunk was
written, hands that out at /truth, and starts each answer with its own number (" e17 token ..."), by
which a client's record of a request is found again. A request's arrival is the kernel's stamp, as
in harness/load/stream.py: the event loop may get round to reading it milliseconds later.
"""

import json
import re
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.engines.emulator import Wire

_SO_TIMESTAMPNS = 35
_REQUEST_ID = re.compile(rb"(?i)\r\nx-request-id: *(\S+)")
_TIMESPEC = struct.Struct("@qq")


@dataclass(slots=True)
class Truth:
    """One request. Times: monotonic ns; write_ns: right before the write of each token chunk.
    request_id: what the client called it in X-Request-ID, "" where it named it not."""

    number: int
    received_ns: int
    request_id: str
    write_ns: list[int] = field(default_factory=list)


class Keeper:
    """The truth of all requests since it was last asked for."""

    def __init__(self) -> None:
        self.kept: list[Truth] = []

    def add(self, number: int, received_ns: int, head: bytes) -> Truth:
        """head: the request's line and headers."""
        named = _REQUEST_ID.search(head)
        self.kept.append(Truth(number, received_ns, named[1].decode() if named else ""))
        return self.kept[-1]

    def take(self) -> bytes:
        """All that is kept, as JSON; forgets it."""
        kept, self.kept = self.kept, []
        return json.dumps(
            [{name: getattr(t, name) for name in Truth.__slots__} for t in kept]
        ).encode()


class StampedTransport:
    """What an emulator's connection needs of a transport, and the kernel's stamp of each read,
    which the event loop's own transport drops."""

    def __init__(self, connection: socket.socket, wire: "Wire", loop: Any) -> None:
        self._socket, self._wire, self._loop = connection, wire, loop
        self._queue = bytearray()
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        wire.connection_made(self)
        loop.add_reader(connection, self._read)

    def get_extra_info(self, _: str) -> socket.socket:
        return self._socket

    def write(self, data: bytes) -> None:
        self._queue += data
        self._loop.add_writer(self._socket, self._flush)

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self._loop.call_soon(self._wire.connection_lost, None)

    def _flush(self) -> None:
        try:
            del self._queue[: self._socket.send(self._queue)]
        except BlockingIOError:
            return
        except ConnectionError:
            return self.close()
        if not self._queue:
            self._loop.remove_writer(self._socket)

    def _read(self) -> None:
        try:
            data, ancillary, _, _ = self._socket.recvmsg(65536, 64)
        except BlockingIOError:
            return
        except ConnectionError:
            return self.close()
        if not data:
            return self.close()
        now_ns = time.monotonic_ns()
        if ancillary:
            seconds, nanoseconds = _TIMESPEC.unpack_from(ancillary[0][2])
            now_ns -= max(0, time.time_ns() - seconds * 1_000_000_000 - nanoseconds)
        self._wire.received_ns = now_ns
        self._wire.data_received(data)


async def accept(listener: socket.socket, make_wire: Callable[[], "Wire"], loop: Any) -> None:
    """Takes connections for ever."""
    listener.setblocking(False)
    while True:
        connection, _ = await loop.sock_accept(listener)
        StampedTransport(connection, make_wire(), loop)
