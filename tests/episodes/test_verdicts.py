"""A committed recording's verdicts are those that its rows give today."""

from pathlib import Path

from harness.recording.store import connect
from harness.recording.verdict import judge
from harness.render import manifest

ROOT = Path(__file__).parents[2]
LOOKS = 12  # cells of each recording, spread over it: `harness check --rejudge` does them all


def test_every_recording_can_be_judged_again_with_the_same_result() -> None:
    for entry in manifest.verify(ROOT):
        if not Path(entry.file).parent.name.isdigit():
            continue  # a benchmark of load generators, which has no cells
        with connect(ROOT / entry.file) as con:
            cells = con.execute("SELECT cell_id, reasons FROM cell ORDER BY cell_id").fetchall()
            for cell_id, reasons in cells[:: max(1, len(cells) // LOOKS)]:
                assert judge(con, cell_id) == reasons, f"{entry.file}, cell {cell_id}"
