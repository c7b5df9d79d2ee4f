"""`python -m harness compare`: proof, ratios and sentence for people, JSON for scripts."""

import json

import pytest

from harness import cli
from harness.recording.store import Recording


def test_the_command_prints_the_proof_and_ends_with_json(
    made: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    made.close()
    cli.compare(made.path, "engine=fast", "engine=slow", "ttft", "mean")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "equal   cells, by repeat and level: 5 | 5"
    assert any(line.endswith("16.5 / 33 ms = 0.500 (12 values)") for line in lines)
    assert lines[-2].startswith("TTFT mean of fast is 0.27 times that of slow [")
    found = json.loads(lines[-1])
    assert found["verdict"] == "better" and len(found["ratios"]) == 5
