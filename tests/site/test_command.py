"""`python -m harness site`: strict, and it says what is wrong."""

import subprocess
import sys
from pathlib import Path

from tests.render.conftest import REPO, checkout


def test_a_dead_link_fails_the_build_and_is_named(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    page = root / "docs" / "method.md"
    page.write_text(page.read_text() + "\nSee [nothing](nowhere.md).\n")
    done = subprocess.run(
        [sys.executable, "-m", "harness", "site", "--root", str(root)],
        cwd=REPO,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "method.md" in done.stderr and "nowhere.md" in done.stderr
