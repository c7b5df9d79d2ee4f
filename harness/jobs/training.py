"""What models that were made here are, and how they learned: rows of training_step.

A script that trains a model writes training.jsonl into the model's folder, one line a step that it
reports: step, tokens_seen, loss, took_ns, note. A model of random weights has no such file. The
facts of the job hold the SHA-256 of each model's weights.

    PYTHON harness/jobs/training.py --out FILE --repeat R FOLDER...
"""

import argparse
import hashlib
import json
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeat", type=int, required=True)
    parser.add_argument("folders", type=Path, nargs="+", help="folders of the models")
    asked = parser.parse_args()
    weights: dict[str, str] = {}
    with asked.out.open("w", encoding="utf-8") as out:
        for folder in asked.folders:
            with (folder / "model.safetensors").open("rb") as data:
                weights[folder.name] = hashlib.file_digest(data, "sha256").hexdigest()
            told = folder / "training.jsonl"
            for line in told.read_text(encoding="utf-8").splitlines() if told.exists() else []:
                row = {"table": "training_step", "model": folder.name} | json.loads(line)
                out.write(json.dumps(row) + "\n")
        out.write(json.dumps({"table": "job", "facts": {"weights_sha256": weights}}) + "\n")


if __name__ == "__main__":
    main()
