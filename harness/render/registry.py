"""episodes/index.toml: the course's episodes, whether or not they have been written or recorded.

Beside them stand demonstrations: folders of the same kind, recorded from the emulator and labelled
so, whose pages belong to the method and not to the course.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError


@dataclass(frozen=True, slots=True)
class Chapter:
    """One episode of the course. picture: the chart that stands for it on other pages, or ""."""

    number: str
    slug: str
    title: str
    summary: str
    picture: str = ""

    @property
    def name(self) -> str:
        """Name of its folder under episodes/ and of its page."""
        return f"{self.number}-{self.slug}"


def read(root: Path) -> list[Chapter]:
    """All episodes, in order. Raises HarnessError naming the file and the entry."""
    chapters = _chapters(root, "episode")
    folders = {path.name for path in (root / "episodes").iterdir() if path.is_dir()}
    unknown = folders - {chapter.name for chapter in [*chapters, *demonstrations(root)]}
    if unknown:
        raise HarnessError(
            f"{root / 'episodes' / 'index.toml'}: has no entry for the folder"
            f" episodes/{sorted(unknown)[0]}"
        )
    return chapters


def demonstrations(root: Path) -> list[Chapter]:
    """The pages that show recordings of the emulator, in order."""
    return _chapters(root, "demonstration")


def _chapters(root: Path, kind: str) -> list[Chapter]:
    path = root / "episodes" / "index.toml"
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get(kind, [])
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise HarnessError(f"{path}: cannot be read: {error}") from error
    chapters = []
    for table in tables:
        try:
            chapter = Chapter(**table)
        except TypeError as error:
            raise HarnessError(f"{path}: entry {table.get('number', '?')}: {error}") from error
        if not re.fullmatch(r"\d\d", chapter.number) or not re.fullmatch(
            r"[a-z0-9-]+", chapter.slug
        ):
            raise HarnessError(f"{path}: {chapter.number}-{chapter.slug} is no name for a folder")
        chapters.append(chapter)
    return chapters
