"""The pages of the lessons: one a card here, the list in listing.py, the sheets in sheet.py.

lessons/NN-slug.toml -> docs/lessons/slug.md; docs/lessons/index.md; questions.md and answers.md,
which search leaves out; docs/assets/data/lessons.json, by which a card finds its neighbours in a
filter of the list.
"""

import json
import re
from pathlib import Path

from harness.errors import HarnessError
from harness.render import queries
from harness.render.cards import listing, minutes, sheet
from harness.render.cards.card import Card, read_all
from harness.render.cards.html import question_html
from harness.render.cards.links import Links
from harness.render.cards.made import Made, block, facts
from harness.render.cards.text import CardText, Recorded
from harness.render.escape import text
from harness.render.front_matter import front_matter
from harness.render.registry import Chapter

_HASH = re.compile(r'<section class="tbt-question" id="([^"]+)"[^>]* data-hash="(\w+)"')


def build(
    root: Path,
    chapters: list[Chapter],
    recorded: Recorded,
    kept: queries.Cache,
    pages: dict[str, str],
) -> dict[str, str]:
    """The files to write, by name. pages: Markdown of the pages that cards may link to, by its name
    under docs/. Raises HarnessError, naming file and key, at the first fault of a card."""
    links, cards = Links(chapters, pages), []
    files: dict[str, str] = {}
    for card in read_all(root):
        made, data = _made(card, root, recorded, kept, links)
        cards.append(made)
        files |= {f"docs/assets/data/{name}.json": content for name, content in data.items()}
    for place, made in enumerate(cards):
        before, after = cards[:place][-1:], cards[place + 1 :][:1]
        files[f"docs/lessons/{made.card.slug}.md"] = _page(made, before, after)
    files["docs/lessons/index.md"] = listing.page(cards)
    for kind in sheet.TITLES:
        files[f"docs/lessons/{kind}.md"] = sheet.page(cards, kind)
    files["docs/assets/data/lessons.json"] = json.dumps(
        [[m.card.slug, m.card.title, m.card.level, m.card.kind, m.card.role] for m in cards],
        ensure_ascii=False, separators=(",", ":"),
    )  # fmt: skip
    return files


def _made(
    card: Card, root: Path, recorded: Recorded, kept: queries.Cache, links: Links
) -> tuple[Made, dict[str, str]]:
    """The card, and the data of its figures."""
    said = CardText(card, root, recorded, kept)
    intro = said.html("intro", card.intro)
    questions = "\n".join(
        question_html(said, question, place, links)
        for place, question in enumerate(card.questions, 1)
    )
    hashes = dict(_HASH.findall(questions))
    takeaway = said.html("takeaway", card.takeaway)
    _check_idents(card, intro + questions + takeaway)
    minutes.check(card, intro + questions + takeaway)
    return Made(card, intro, questions, takeaway, said.closing(), hashes), said.data


def _check_idents(card: Card, html: str) -> None:
    """Raises HarnessError where two parts of a card have one id: a figure that is shown twice."""
    ids = re.findall(r'\sid="([^"]+)"', html)
    twice = [ident for ident in ids if ids.count(ident) > 1]
    if twice:
        raise HarnessError(f"{card.path}: the card shows {twice[0]!r} twice: once is enough")


def _page(made: Made, before: list[Made], after: list[Made]) -> str:
    """before, after: the card next to it, or none."""
    card = made.card
    closing = (
        '<section class="tbt-numbers" data-search-exclude><h2>Where the numbers come from</h2>'
        f"{made.closing}</section>"
        if made.closing
        else ""
    )
    body = (
        f'<p class="tbt-facts"><a href="../">Lessons</a> · {facts(card)} · {text(card.role)}</p>'
        f'<p class="tbt-lead">{text(card.summary)}</p>'
        f'<div class="tbt-card" data-card="{card.slug}">{made.intro}{made.questions}'
        f'<section class="tbt-end"><h2>What to keep</h2>{made.takeaway}'
        '<p class="tbt-tally" role="status"></p><div class="tbt-again"></div></section>'
        f"{closing}</div>"
        f'<nav class="tbt-around" aria-label="Cards">{_neighbour(before, "Previous", "prev")}'
        f"{_neighbour(after, 'Next', 'next')}</nav>"
    )
    head = front_matter(card.title, card.summary, hide=("toc",))
    return f"{head}# {card.title}\n\n{block(body)}\n"


def _neighbour(next_to: list[Made], word: str, rel: str) -> str:
    if not next_to:
        return f'<span data-rel="{rel}"></span>'
    card = next_to[0].card
    return f'<a rel="{rel}" data-rel="{rel}" href="../{card.slug}/">{word}: {text(card.title)}</a>'
