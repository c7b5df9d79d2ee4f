"""The links of a card to where its answers are taught, checked against the pages of this build."""

import difflib
import html
import re

from markdown.extensions.toc import slugify  # type: ignore[import-untyped]

from harness.errors import HarnessError
from harness.render.cards.card import Card, Source
from harness.render.escape import text
from harness.render.registry import Chapter

_HEADING = re.compile(r"^#{2,5} +(.+?)(?: *\{ *#([\w-]+)[^}]*\})? *$", re.MULTILINE)
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)


class Links:
    """chapters: the episodes. pages: Markdown of every page by its name under docs/."""

    def __init__(self, chapters: list[Chapter], pages: dict[str, str]) -> None:
        self._chapters = {chapter.number: chapter for chapter in chapters}
        self._pages = pages

    def html(self, card: Card, source: Source) -> str:
        """A link. Raises HarnessError naming the card's file and the source where it is dead."""
        if source.kind in ("manual", "paper", "report"):
            return f'<a href="{text(source.url)}">{text(source.title)}</a> ({source.kind})'
        where = f"{card.path}: source[{source.id}]"
        if source.kind == "episode":
            chapter = self._chapters.get(source.episode)
            if chapter is None:
                raise HarnessError(f"{where}.episode: there is no episode {source.episode!r}")
            page, title = f"episodes/{chapter.name}.md", f"Episode {chapter.number}"
        else:
            page, title = source.page, source.page.removesuffix(".md").rpartition("/")[2]
            title = title.replace("-", " ").capitalize()
        if page not in self._pages:
            raise HarnessError(f"{where}.page: there is no page {page!r}")
        known = headings(self._pages[page])
        if source.heading not in known:
            close = difflib.get_close_matches(source.heading, known, 1, 0.3)
            near = f"; there is {close[0]!r}" if close else ""
            raise HarnessError(f"{where}.heading: {page} has no heading {source.heading!r}{near}")
        address = f"../../{page.removesuffix('.md')}/#{known[source.heading]}"
        return f'<a href="{text(address)}">{text(title)}, {text(source.heading)}</a>'


def headings(markdown: str) -> dict[str, str]:
    """The headings of a page, and their anchors as MkDocs makes them (the first of equal ones)."""
    outside = _FENCED.sub("", markdown)
    found: dict[str, str] = {}
    for said, ident in _HEADING.findall(outside):
        plain = html.unescape(re.sub(r"<[^>]*>|[`*]", "", said))
        found.setdefault(plain, ident or slugify(plain, "-"))
    return found
