"""A checkout in small: the repository's docs and registry, one stand-in episode, one recording."""

import shutil
from pathlib import Path

import pytest

from harness.render import manifest
from tests.render import recordings

REPO = Path(__file__).parents[2]


def checkout(root: Path, hostile: bool = False) -> Path:
    """Lays a small checkout into `root` and returns it."""
    shutil.copytree(REPO / "docs", root / "docs", dirs_exist_ok=True)
    for folder in ("episodes", "lessons", "reference", "assets/data"):
        shutil.rmtree(root / "docs" / folder, ignore_errors=True)
    for drawn in (root / "docs" / "assets").glob("picture-*.svg"):
        drawn.unlink()
    shutil.copy(REPO / "mkdocs.yml", root)
    recordings.episode(root / "episodes" / "00-warm-up")
    index = (REPO / "episodes" / "index.toml").read_text(encoding="utf-8")
    picture = 'number = "00"\npicture = "timeline"'
    kept = [line for line in index.splitlines() if not line.startswith("picture")]
    index = "\n".join(kept).replace('number = "00"', picture)
    (root / "episodes" / "index.toml").write_text(index, encoding="utf-8")
    recording = recordings.write(root / "data" / "00" / "made.duckdb", hostile=hostile)
    manifest.update(root, recording)
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return checkout(tmp_path)
