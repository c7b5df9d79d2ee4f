"""Two sheets to print: all questions, and all answers.

They are made of the cards' own HTML: what opens, moves or is pressed is of no use on paper, so it
goes. Figures and models stay on the cards. Search leaves the sheets out.
"""

import re

from harness.render.cards.made import Made, block, facts
from harness.render.escape import text
from harness.render.front_matter import front_matter

TITLES = {"questions": "Lesson cards: the questions", "answers": "Lesson cards: the answers"}
OTHER = {"questions": "answers", "answers": "questions"}
_KEY = (
    r'<details class="tbt-key" data-search-exclude><summary>.*?</summary>(.*?)</details></section>'
)
# In order: what it is, and what stands for it on paper.
_FLAT = [
    (
        r'<figure class="tbt-figure".*?</figure>',
        '<p class="tbt-missing">A figure: on the card.</p>',
    ),
    (r'<div class="tbt-block tbt-try".*?</details>\s*</div>', ""),
    (r'<details class="tbt-(?:open|hints)".*?</details>', ""),
    (r'<fieldset class="tbt-sure".*?</fieldset>|<div class="tbt-(?:buttons|draw)".*?</div>', ""),
    (r'<p class="tbt-verdict"[^>]*></p>|<textarea.*?</textarea>', ""),
    (r"<select.*?</select>|<input[^>]*type=.text[^>]*>", "____ "),
    (r"<input[^>]*>", "☐ "),
    (r'<a class="tbt-n[^>]*>(.*?)</a>', r"\1"),
    (r"</?(?:form|label|fieldset)\b[^>]*>", ""),
    (r"<legend>(.*?)</legend>", r"<p><strong>\1</strong></p>"),
    (r"<(/?)h3>", r"<\1h4>"),
    (r"<(/?)h2>", r"<\1h3>"),
    (r' id="[^"]*"', ""),
    (r'class="tbt-option"', 'class="tbt-flat"'),  # no longer a control and its label, side by side
]
_QUESTION = re.compile(
    r"(<section [^>]*>\s*<h2>.*?</h2>).*?(<legend>.*?</legend>).*?" + _KEY, re.DOTALL
)


def page(cards: list[Made], kind: str) -> str:
    """Markdown of a sheet. kind: questions or answers."""
    parts = [
        f'<h2>{text(made.card.title)}</h2><p class="tbt-facts">{facts(made.card)}</p>'
        + (_questions(made) if kind == "questions" else _answers(made))
        for made in cards
    ]
    other = OTHER[kind]
    note = (
        f'<p>Figures and models are on the cards. <a href="../{other}/">The {other}</a> are on a'
        ' sheet of their own; <a href="../">all cards</a>.</p>'
    )
    head = front_matter(TITLES[kind], f"{TITLES[kind]}.", ("navigation", "toc"), search=False)
    return f"{head}# {TITLES[kind]}\n\n{block(note + ''.join(parts))}\n"


def _questions(made: Made) -> str:
    asked = re.sub(_KEY, "</section>", made.questions, flags=re.DOTALL)
    return _flat(made.intro + asked)


def _answers(made: Made) -> str:
    answers = _flat(_QUESTION.sub(r"\1\2\3</section>", made.questions))
    return f"{answers}<p><strong>What to keep.</strong></p>{_flat(made.takeaway)}"


def _flat(html: str) -> str:
    for pattern, paper in _FLAT:
        html = re.sub(pattern, paper, html, flags=re.DOTALL)
    return html
