"""The spool: finished requests on disk, raw, in the order in which they ended.

Parsing costs time that the load process does not have while it measures, and a run of a million
requests does not fit in memory; so bytes and stamps go to disk as they are, and are parsed after.

A record is a head (sizes and a CRC-32), a JSON line of the scalar fields, and for a request its
three stamp columns and its bytes. A record cut short by a kill fails its size or its checksum: that
is where reading ends, and whatever stood before it counts.
"""

import json
import os
import struct
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from harness.load.clock import Anchor

_HEAD = struct.Struct("<4sIIQI")  # magic, bytes of JSON, reads, bytes of data, CRC-32 of the rest
_MAGIC = b"TBT1"


@dataclass(frozen=True, slots=True)
class RawRequest:
    """One finished request as the client saw it.

    Times in monotonic ns, except read_kernel_ns: the kernel's wall-clock stamp, 0 where it gave
    none. Read i brought read_bytes[i] bytes of data. error is the transport's (None, "timeout",
    "connection refused" ...); what the answer itself says is left to the parser.
    """

    request_id: int
    phase: str
    slot: int
    scheduled_ns: int
    sent_ns: int | None
    ended_ns: int
    error: str | None
    read_user_ns: Sequence[int]
    read_kernel_ns: Sequence[int]
    read_bytes: Sequence[int]
    data: bytes


_COLUMNS = ("read_user_ns", "read_kernel_ns", "read_bytes")
_SCALARS = ("request_id", "phase", "slot", "scheduled_ns", "sent_ns", "ended_ns", "error")


class SpoolWriter:
    """Appends records; buffered, so that a finished request costs a copy and not a disk access."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "wb", buffering=1 << 20)  # noqa: SIM115 - closed by close()

    def request(self, raw: RawRequest) -> None:
        scalars = {name: getattr(raw, name) for name in _SCALARS}
        columns = b"".join(array("q", getattr(raw, name)).tobytes() for name in _COLUMNS)
        self._append(scalars, len(raw.read_bytes), columns, raw.data)

    def anchor(self, anchor: Anchor) -> None:
        self._append({"anchor": asdict(anchor)}, 0, b"", b"")

    def _append(self, scalars: dict, reads: int, columns: bytes, data: bytes) -> None:
        text = json.dumps(scalars).encode()
        check = zlib.crc32(data, zlib.crc32(columns, zlib.crc32(text)))
        self._file.write(_HEAD.pack(_MAGIC, len(text), reads, len(data), check))
        self._file.write(text)
        self._file.write(columns)
        self._file.write(data)

    def close(self) -> None:
        self._file.close()


def read_anchors(path: Path) -> list[Anchor]:
    """The clock anchors of a spool: a first pass, because a stamp needs those around it."""
    with open(path, "rb") as file:
        records = (scalars for scalars, _, _ in _records(file))
        return [Anchor(**scalars["anchor"]) for scalars in records if "anchor" in scalars]


def read_requests(path: Path) -> Iterator[RawRequest]:
    """The finished requests of a spool, one in memory at a time."""
    with open(path, "rb") as file:
        for scalars, columns, data in _records(file):
            if "anchor" not in scalars:
                user, kernel, sizes = columns
                yield RawRequest(
                    **scalars,
                    read_user_ns=user,
                    read_kernel_ns=kernel,
                    read_bytes=sizes,
                    data=data,
                )


def _records(file: BinaryIO) -> Iterator[tuple[dict, list[array], bytes]]:
    file_bytes = os.fstat(file.fileno()).st_size
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        magic, text_bytes, reads, data_bytes, check = _HEAD.unpack(head)
        size = text_bytes + 8 * len(_COLUMNS) * reads + data_bytes
        if magic != _MAGIC or size > file_bytes - file.tell():
            return
        body = file.read(size)
        if zlib.crc32(body) != check:
            return
        columns, at = [], text_bytes
        for _ in _COLUMNS:
            columns.append(array("q", body[at : at + 8 * reads]))
            at += 8 * reads
        yield json.loads(body[:text_bytes]), columns, body[at:]
