"""What a question must have by its type, and what gives an answer away.

The rules of item writing are those that readers without knowledge profit from when they are broken:
the longest option is right, an option refers to others, an option has no reason.
"""

import re
from typing import TYPE_CHECKING

from harness.toml_values import require

if TYPE_CHECKING:
    from harness.render.cards.card import Card, Question

# Keys that a type takes beside those of every question; the first ones it must have.
KEYS = {
    "single": (("options",), ()),
    "multi": (("options",), ()),
    "number": (("answer",), ("unit", "format", "factor", "slips")),
    "order": (("options",), ()),
    "line": (("options", "lines"), ("otherwise",)),
    "sketch": (
        ("points", "x", "y", "x_label", "y_label", "need"),
        ("where", "unit", "format", "factor"),
    ),
    "text": (("options", "samples", "need"), ()),
}
OPTION_KEYS = {
    "single": ("text", "right", "when"),
    "multi": ("text", "right", "when"),
    "order": ("text", "by"),
    "line": ("find", "right"),
    "text": ("text",),
}
LONGEST_TIMES = 1.2  # the right option may be at most this many times as long as the longest wrong
MOST_HINTS = 3
_REFERS = re.compile(r"\b(?:all|none|both|any) of (?:the|these)\b", re.IGNORECASE)


def check_question(card: "Card", question: "Question") -> None:
    """Raises HarnessError naming file and key at the first rule that a question breaks."""
    path, where = card.path, f"question[{question.id}]"
    require(path, f"{where}.type", question.type in KEYS, f"is one of {', '.join(KEYS)}")
    needed, allowed = KEYS[question.type]
    for key in needed:
        require(path, f"{where}.{key.removesuffix('s') if key in ('options', 'samples') else key}",
                bool(getattr(question, key)), f"a {question.type} needs it")  # fmt: skip
    others = {key for pair in KEYS.values() for part in pair for key in part}
    for key in sorted(others - {*needed, *allowed}):
        default = type(question).__dataclass_fields__[key].default
        require(path, f"{where}.{key}", getattr(question, key) == default,
                f"a {question.type} does not take it")  # fmt: skip
    require(path, f"{where}.ask", "\n" not in question.ask.strip(), "is one paragraph: see `show`")
    require(path, f"{where}.explain", bool(question.explain.strip()), "is empty")
    says = question.type != "number" or "{{ answer }}" in question.explain
    require(path, f"{where}.explain", says, "of a number says it: {{ answer }}")
    require(path, f"{where}.factor", question.factor > 1, "is a ratio above 1")
    require(path, f"{where}.hints", len(question.hints) <= MOST_HINTS, f"at most {MOST_HINTS}")
    if card.level in ("L1", "L2"):
        require(path, f"{where}.hints", bool(question.hints), f"at {card.level} it has a hint")
    known = {source.id for source in card.sources}
    for each in question.sources:
        require(path, f"{where}.sources", each in known, f"no [[source]] has the id {each!r}")
    require(path, f"{where}.sources", bool(question.sources), "names where the answer comes from")
    _check_options(card, question)


def _check_options(card: "Card", question: "Question") -> None:
    path, where = card.path, f"question[{question.id}]"
    allowed = OPTION_KEYS.get(question.type, ())
    for place, option in enumerate(question.options, 1):
        at = f"{where}.option[{place}]"
        require(path, f"{at}.why", len(option.why.split()) >= 4, "says why in a sentence")
        for key in ("text", "find", "by", "when"):
            given = bool(getattr(option, key))
            require(path, f"{at}.{key}", not given or key in allowed,
                    f"an option of a {question.type} does not take it")  # fmt: skip
            require(path, f"{at}.{key}", given or key == "when" or key not in allowed, "is missing")
        require(path, f"{at}.text", not _REFERS.search(option.text), "must stand by itself")
    if question.type in ("single", "multi", "order"):
        most = 7 if question.type == "order" else 6
        require(path, f"{where}.option", 3 <= len(question.options) <= most, f"has 3 to {most}")
    right = [option for option in question.options if option.right]
    wrong = [option for option in question.options if not option.right]
    if question.type in ("single", "line"):
        require(path, f"{where}.option", len(right) == 1, f"{len(right)} are right, one must be")
    if question.type == "multi":
        require(path, f"{where}.option", len(right) > 1 and len(wrong) > 0,
                "of a multi at least two are right and one is wrong")  # fmt: skip
    if question.type == "single":
        longest = max(len(option.text) for option in wrong)
        told = len(right[0].text) > LONGEST_TIMES * longest
        require(path, f"{where}.option", not told, "the right one can be told by its length")
    if question.type == "text":
        kinds = [sample.good for sample in question.samples]
        require(path, f"{where}.sample", True in kinds and False in kinds,
                "shows at least one good answer and one plausible bad one")  # fmt: skip
        require(path, f"{where}.need", 0 < question.need <= len(question.options),
                "is how many of its points make a good answer")  # fmt: skip
