"""The made-up recording has what Episode 01's queries ask for."""

from pathlib import Path

from harness import scale
from harness.recording.store import connect


def test_a_recording_is_made_up_and_every_query_answers(tmp_path: Path) -> None:
    path = scale._make(tmp_path, requests=1100)
    with connect(path) as con:
        assert con.execute(
            "SELECT count(*), min(len(chunk_gap_us)), max(len(chunk_gap_us)) FROM request"
        ).fetchall() == [(1100, 127, 127)]
        assert con.execute("SELECT count(DISTINCT cell_id) FROM engine_gauge").fetchall() == [
            (110,)
        ]
        assert {name for name, _ in scale._timed(con)} >= {"closed_latency", "slogan", "timeline"}
