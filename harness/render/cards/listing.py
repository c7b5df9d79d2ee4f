"""/lessons/: every card in a row, which docs/assets/js/lessons.js filters, sorts and marks."""

import json

from harness.render.cards.card import LEVELS
from harness.render.cards.made import Made, block, facts
from harness.render.escape import text
from harness.render.front_matter import front_matter

PLANNED = 30
STATES = {"new": "not begun", "begun": "begun", "done": "done", "due": "to review"}
INTRO = (
    "A lesson is a card of six to fifteen minutes: you commit to an answer, then see the recorded,"
    " computed or cited fact that decides it, and why each other answer is wrong. The key of an"
    " answer is read from the recordings when this site is built. What you answer stays in your"
    " browser."
)
REVIEW = """
<section class="tbt-review"><h2 id="review">Your review</h2>
<p>A question that you missed, took a hint for or guessed comes back after one day, then after 3, 7,
21 and 60. Nothing of it leaves this browser.</p><ul class="tbt-due"></ul>
<div class="tbt-buttons"><button type="button" data-do="export">Export</button>
<label class="tbt-file">Import <input type="file" accept="application/json"></label>
<button type="button" data-do="forget">Forget all</button></div>
<p class="tbt-said-so" role="status"></p></section>
"""


def page(cards: list[Made]) -> str:
    """Its Markdown."""
    level = {level: f"{level} {said}" for level, said in LEVELS.items()}
    selects = "".join(
        [
            _select("role", "Role", {made.card.role: made.card.role for made in cards}),
            _select("level", "Level", level),
            _select("kind", "Kind", {each: each for each in sorted({m.card.kind for m in cards})}),
            _select("state", "State", STATES),
            _select("sort", "Sort by", {"level": "level", "minutes": "minutes"}, "number"),
        ]
    )
    rows = "".join(_row(made) for made in cards)
    body = (
        f"<p>Models / Inference and serving systems: {len(cards)} of {PLANNED} planned cards.</p>"
        '<form class="tbt-filter" aria-label="Cards"><label>Search <input type="search" name="q">'
        f"</label>{selects}</form>"
        f'<p class="tbt-count" role="status"></p><ol class="tbt-cards">{rows}</ol>'
        '<p>On paper: <a href="questions/">the questions</a>,'
        ' <a href="answers/">the answers</a>.</p>'
        f"{REVIEW}"
    )
    head = front_matter("Lessons", "The lesson cards of the course.")
    return f"{head}# Lessons\n\n{INTRO}\n\n{block(body)}\n"


def _select(name: str, label: str, options: dict[str, str], none: str = "any") -> str:
    """none: what stands for no choice."""
    shown = "".join(
        f'<option value="{text(o)}">{text(said)}</option>' for o, said in options.items()
    )
    first = f'<option value="">{none}</option>'
    return f'<label>{label} <select name="{name}">{first}{shown}</select></label>'


def _row(made: Made) -> str:
    card = made.card
    hashes = text(json.dumps(made.hashes))
    return (
        f'<li data-slug="{card.slug}" data-role="{text(card.role)}" data-level="{card.level}"'
        f' data-kind="{text(card.kind)}" data-minutes="{card.minutes}" data-questions="{hashes}">'
        f'<h2 id="{card.slug}"><a href="{card.slug}/">{text(card.title)}</a></h2>'
        f"<p>{text(card.summary)}</p>"
        f'<p class="tbt-facts">{facts(card)} <span class="tbt-progress"></span></p></li>'
    )
