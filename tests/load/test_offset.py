from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.load.clock import Anchor, Clock
from harness.load.offset import MasterClock, Offset, clock_name, move_spool, offset_of
from harness.load.spool import RawRequest, SpoolWriter, read_anchors, read_requests


def test_the_shortest_round_trip_tells_the_offset() -> None:
    # The master is 1,000 ahead. Sent at 10, 3 on the way, 5 back; the others were held up.
    trips = [(0, 1_090, 95), (10, 1_013, 18), (20, 1_021, 80)]
    assert offset_of(trips) == Offset(worker_ns=14, master_minus_worker_ns=999, uncertainty_ns=4)


@given(
    st.integers(-(10**15), 10**15),
    st.lists(st.tuples(*[st.integers(0, 10**6)] * 3), min_size=1),
)
def test_the_true_offset_lies_within_the_uncertainty(
    ahead_ns: int, trips: list[tuple[int, int, int]]
) -> None:
    found = offset_of(
        (sent, sent + there + ahead_ns, sent + there + back) for sent, there, back in trips
    )
    assert abs(found.master_minus_worker_ns - ahead_ns) <= found.uncertainty_ns


def test_a_drifting_clock_is_interpolated_and_goes_on() -> None:
    clock = MasterClock(Offset(1_000, 500, 3), Offset(2_000, 600, 8))
    assert [clock.at(t_ns) for t_ns in (0, 1_000, 1_500, 2_000, 3_000)] == [
        *(400, 1_500, 2_050, 2_600, 3_700)
    ]
    assert clock.back(1_500) == 1_000
    assert clock.summary() == {"offset_ns": 500, "uncertainty_ns": 8, "drift_ppm": 100_000.0}


def test_a_moved_spool_tells_the_same_on_the_masters_clock(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    wall = 1_000_000
    spool = SpoolWriter(path)
    spool.anchor(Anchor(5, wall, 2))
    spool.request(RawRequest(1, "measured", 0, 10, 20, 90, None, [37], [wall + 30], [1], b"a"))
    spool.request(RawRequest(2, "measured", 0, 10, None, 50, "timeout", [], [], [], b""))
    spool.close()
    move_spool(path, MasterClock(Offset(0, 700, 1), Offset(0, 700, 1)))
    assert read_anchors(path) == [Anchor(705, wall - 700, 2)]
    sent, failed = read_requests(path)
    assert (sent.scheduled_ns, sent.sent_ns, sent.ended_ns) == (710, 720, 790)
    assert list(sent.read_user_ns) == [737]
    assert list(sent.read_kernel_ns) == [wall + 30]
    assert Clock(read_anchors(path)).to_mono(wall + 30, 737) == 730
    assert (failed.sent_ns, failed.ended_ns, failed.error) == (None, 750, "timeout")
    assert list(tmp_path.iterdir()) == [path]


def test_a_clock_has_one_name() -> None:
    assert clock_name() == clock_name()
