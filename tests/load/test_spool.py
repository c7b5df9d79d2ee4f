from pathlib import Path

import pytest

from harness.load.clock import Anchor
from harness.load.spool import RawRequest, SpoolWriter, read_anchors, read_requests

FIRST = RawRequest(
    1, "warmup", 0, 10, 20, 90, None, [30, 60], [1_000_030, 1_000_060], [3, 4], b"abcdefg"
)
FAILED = RawRequest(2, "measured", 1, 10, None, 50, "connection refused", [], [], [], b"")
ANCHORS = [Anchor(5, 1_000_000, 2), Anchor(95, 1_000_001, 3)]


def write(path: Path) -> Path:
    spool = SpoolWriter(path)
    spool.anchor(ANCHORS[0])
    spool.request(FIRST)
    spool.request(FAILED)
    spool.anchor(ANCHORS[1])
    spool.close()
    return path


def plain(raw: RawRequest) -> tuple:
    return (
        *(raw.request_id, raw.phase, raw.slot, raw.scheduled_ns, raw.sent_ns, raw.ended_ns),
        *(raw.error, list(raw.read_user_ns), list(raw.read_kernel_ns), list(raw.read_bytes)),
        raw.data,
    )


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = write(tmp_path / "spool")
    assert [plain(raw) for raw in read_requests(path)] == [plain(FIRST), plain(FAILED)]
    assert read_anchors(path) == ANCHORS


def test_any_torn_tail_ends_the_reading_cleanly(tmp_path: Path) -> None:
    whole = write(tmp_path / "spool").read_bytes()
    torn = tmp_path / "torn"
    counts = []
    for size in range(len(whole) + 1):
        torn.write_bytes(whole[:size])
        counts.append(len(read_anchors(torn)) + len(list(read_requests(torn))))
    assert counts == sorted(counts)
    assert set(counts) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("garbage", [b"\0" * 100, b"TBT1" + b"\xff" * 60])
def test_garbage_behind_the_last_record_is_not_read(tmp_path: Path, garbage: bytes) -> None:
    path = write(tmp_path / "spool")
    path.write_bytes(path.read_bytes() + garbage)
    assert len(list(read_requests(path))) == 2
