"""The job that copies how models were trained: rows and hashes, from folders written by hand."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "harness" / "jobs" / "training.py"


def test_each_line_is_a_row_and_each_model_has_its_hash(tmp_path: Path) -> None:
    line = {"step": 10, "tokens_seen": 640, "loss": 2.5, "took_ns": 7, "note": ""}
    for name in ("trained", "random"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(name.encode())
    (tmp_path / "trained" / "training.jsonl").write_text(json.dumps(line) + "\n")
    out = tmp_path / "rows.jsonl"
    folders = [str(tmp_path / "trained"), str(tmp_path / "random")]
    argv = [sys.executable, str(SCRIPT), "--out", str(out), "--repeat", "1", *folders]
    subprocess.run(argv, check=True)
    row, job = (json.loads(each) for each in out.read_text().splitlines())
    assert row == {"table": "training_step", "model": "trained"} | line
    assert job["facts"]["weights_sha256"] == {
        name: hashlib.sha256(name.encode()).hexdigest() for name in ("trained", "random")
    }
