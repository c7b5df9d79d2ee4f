"""How long a card takes: reading at an even pace, and the time that each kind of answer takes."""

import re

from harness.errors import HarnessError
from harness.render.cards.card import Card

WORDS_PER_MINUTE = 220
SECONDS = {  # to weigh and give an answer, beside reading
    "single": 45, "multi": 60, "number": 90, "order": 75, "line": 60, "sketch": 90, "text": 180,
}  # fmt: skip
LOOK_SECONDS = 20  # at a figure or a table
WITHIN = 0.25
_ASIDE = re.compile(
    r'<details class="tbt-(?:open|hints)".*?</details>|<svg.*?</svg>|<noscript>.*?</noscript>'
    r"|<table.*?</table>|<fieldset disabled>.*?</fieldset>",
    re.DOTALL,
)
_LOOK = re.compile(r'<figure class="tbt-figure"|<div class="tbt-block')


def estimate(card: Card, html: str) -> float:
    """Minutes. html: of the whole card; what has to be opened and rows of tables don't count."""
    read = re.sub(r"<[^>]*>", " ", _ASIDE.sub(" ", html))
    words = len([word for word in read.split() if re.search(r"\w", word)])
    answering = sum(SECONDS[question.type] for question in card.questions)
    return words / WORDS_PER_MINUTE + (answering + LOOK_SECONDS * len(_LOOK.findall(html))) / 60


def check(card: Card, html: str) -> None:
    """Raises HarnessError where the card says another time than it takes."""
    found = estimate(card, html)
    if not abs(found - card.minutes) <= WITHIN * card.minutes:
        raise HarnessError(
            f"{card.path}: minutes: it says {card.minutes}, reading and answering take about"
            f" {found:.1f}: shorten or lengthen the card"
        )
