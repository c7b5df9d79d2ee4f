"""What the doctor finds, and the command that mends it."""

import json
from pathlib import Path

import pytest

from harness import doctor
from harness.load.ceiling import FOLDER
from harness.models import BUILDERS, Builder
from harness.telemetry import machine


def calibration(root: Path) -> doctor.Finding:
    (found,) = [each for each in doctor.examine(root) if each.name == "calibration"]
    return found


def test_a_machine_that_is_not_calibrated_is_told_how(tmp_path: Path) -> None:
    found = calibration(tmp_path)
    assert (found.state, found.mend) == ("missing", "make calibrate")
    (tmp_path / FOLDER).mkdir(parents=True)
    path = tmp_path / FOLDER / "2026-01-01-cpu.json"
    kept = {"measured_at": "2026-01-01T10:00:00+00:00", "processes": {"1": {}, "2": {}}}
    described = machine.describe()
    path.write_text(json.dumps(kept | {"machine": described | {"cpu": "another"}}))
    assert calibration(tmp_path).state == "missing"
    path.write_text(json.dumps(kept | {"machine": described}))
    assert calibration(tmp_path) == doctor.Finding(
        "calibration", "ok", "of 2026-01-01T10:00:00+00:00, 1, 2 load processes"
    )
    path.write_text("{")
    found = calibration(tmp_path)
    assert (found.state, found.mend) == ("warn", "make calibrate")
    assert "2026-01-01-cpu.json: not a calibration" in found.detail


def test_models_that_are_not_made_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(BUILDERS):
        monkeypatch.delitem(BUILDERS, name)
    for name in ("one", "other"):
        monkeypatch.setitem(BUILDERS, name, Builder("tiny", "tiny.py", ""))
        (found,) = [each for each in doctor.examine(tmp_path) if each.name == "models"]
        assert (found.state, found.mend) == ("missing", "make models")
        assert found.detail.startswith(f"not made: {name};")
        (tmp_path / ".engines" / "models" / name).mkdir(parents=True)
