"""Every small model of an episode agrees with its committed recording within what it declares."""

import pytest

from harness.render import manifest, model
from tests.episodes import committed

RECORDED = {entry.episode for entry in manifest.read(committed.ROOT) if entry.finished}
PATHS = sorted((committed.ROOT / "episodes").glob("*/model.py"))
MODELS = [
    pytest.param(path.parent.name[:2], each, id=f"{path.parent.name[:2]}-{each.name}")
    for path in PATHS
    for each in model.load(path).values()
    if path.parent.name[:2] in RECORDED
]


@pytest.mark.parametrize(("number", "of"), MODELS)
def test_a_model_agrees_with_the_recording_within_its_stated_error(
    number: str, of: model.Model
) -> None:
    recording = committed.finished(number)
    constants = committed.result(number, recording, of.constants) if of.constants else None
    fitted = model.Fitted(of, constants)
    assert fitted.points(committed.result(number, recording, of.check))  # else it raises
