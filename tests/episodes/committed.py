"""The committed recordings, for the tests of each episode."""

from pathlib import Path

from harness.experiment import find
from harness.render import manifest, queries

ROOT = Path(__file__).parents[2]


def finished(number: str) -> Path:
    """The recording that an episode's page shows on the cpu tier."""
    entry = manifest.newest(manifest.verify(ROOT), number, "cpu")
    assert entry is not None, f"no finished cpu recording of Episode {number} is listed"
    return ROOT / entry.file


def result(number: str, path: Path, name: str) -> queries.Result:
    """What a named query of an episode gives."""
    text = (find(ROOT, number) / "queries.sql").read_text(encoding="utf-8")
    return queries.run(path, queries.parse(text, "queries.sql")[name], "queries.sql")


def rows(number: str, path: Path, name: str) -> list[dict]:
    """The rows of a named query of an episode."""
    return result(number, path, name).records()
