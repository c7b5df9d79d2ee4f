"""Code that needs PyTorch, run by the Python of an engine's environment."""

import json
import subprocess
from pathlib import Path
from typing import Any

from harness.engines import environments

ROOT = Path(__file__).parents[1]


def inside(environment: str, folder: Path, code: str) -> Any:
    """What the code prints as its last line, JSON. folder: of the scripts that it imports."""
    python = environments.python_of(environment, "tests", ROOT)
    head = f"import sys; sys.path.insert(0, {str(folder)!r})\n"
    done = subprocess.run([python, "-c", head + code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])
