import json
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.load.ceiling import FOLDER, ceiling_share, newest_calibration

CEILINGS = {"1": {"chunks_per_s": 50_000, "requests_per_s": 4_000}}


def test_the_larger_share_counts() -> None:
    calibration = {"processes": CEILINGS}
    assert ceiling_share(calibration, 1, 10_000, 400) == 0.2
    assert ceiling_share(calibration, 1, 10_000, 2_000) == 0.5
    assert ceiling_share(calibration, 2, 10_000, 400) is None


def test_the_newest_of_such_a_machine_is_taken(tmp_path: Path) -> None:
    machine: dict[str, object] = {"cpu": "A", "cores": 2}
    assert newest_calibration(tmp_path, machine) is None
    (tmp_path / FOLDER).mkdir(parents=True)
    for date, cpu in (("2026-01-01", "A"), ("2026-01-02", "A"), ("2026-01-03", "B")):
        found = {"machine": {"cpu": cpu, "cores": 2, "kernel": date}, "processes": CEILINGS}
        (tmp_path / FOLDER / f"{date}-cpu.json").write_text(json.dumps(found))
    newest = newest_calibration(tmp_path, machine)
    assert newest is not None and newest["machine"]["kernel"] == "2026-01-02"
    assert newest_calibration(tmp_path, {"cpu": "A", "cores": 4}) is None


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_file_that_is_no_calibration_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / "2026-01-01-cpu.json").write_text(text)
    with pytest.raises(HarnessError, match=r"2026-01-01-cpu\.json: not a calibration"):
        newest_calibration(tmp_path, {"cpu": "A", "cores": 2})
