"""A card with its HTML, for all the pages that show it."""

from dataclasses import dataclass

from harness.render.cards.card import LEVELS, Card
from harness.render.escape import text


@dataclass(frozen=True, slots=True)
class Made:
    """intro, questions, takeaway and closing are HTML. hashes: of its questions, by id."""

    card: Card
    intro: str
    questions: str
    takeaway: str
    closing: str
    hashes: dict[str, str]


def facts(card: Card) -> str:
    """Level, kind and minutes on one line."""
    level = f"{card.level} {LEVELS[card.level]}"
    return f"{text(level)} · {text(card.kind)} · {card.minutes} minutes"


def block(html: str) -> str:
    """HTML as one block that Markdown leaves alone."""
    return f'<div class="tbt-lessons">\n{html}\n</div>\n'
