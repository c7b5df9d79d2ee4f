"""lessons/NN-slug.toml -> frozen dataclasses: one lesson card, validated.

Every fault names the file and the key. What a key means stands beside its field; lessons/README.md
shows them in use. A card's text is Markdown with the macros of an episode. An expression is one of
the same names: value("knee.times", engine="vllm") > 2.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.render.cards.rules import check_question
from harness.toml_values import build, require, table

LEVELS = {"L1": "Screen", "L2": "Working", "L3": "Senior", "L4": "Staff"}
KINDS = ("Concept", "Debug", "Estimate", "Design", "Trade-off", "Code reading")
# What a card of a kind must hold: one question of these types.
NEEDS = {
    "Estimate": ("number",),
    "Design": ("text",),
    "Trade-off": ("order", "sketch"),
    "Code reading": ("line",),
}
_NAME = re.compile(r"(\d\d)-([a-z0-9]+(?:-[a-z0-9]+)*)")


@dataclass(frozen=True, slots=True)
class Source:
    """Where answers come from. kind: episode (its number and one of its headings), page (of this
    site, with a heading), or manual, paper or report (an issue or a change), with title and url."""

    id: str
    kind: str
    title: str = ""
    url: str = ""
    episode: str = ""
    page: str = ""
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """One option; of an order one thing to place, of a text one point of the rubric.

    right: what its `why` says. when: an expression that must agree with it. find: of a line, text
    that stands in it alone. by: of an order, an expression whose values rise from option to option.
    """

    why: str
    text: str = ""
    right: bool = False
    when: str = ""
    find: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Slip:
    """A classic mistake with a number. value: what it leads to, an expression. say: what it is."""

    value: str
    say: str


@dataclass(frozen=True, slots=True)
class Sample:
    """An answer to a free text that the reader compares with: good, or plausible and bad."""

    title: str
    text: str
    good: bool


@dataclass(frozen=True, slots=True)
class Question:
    """One question. show: what stands before it. explain: after the answer. claims: expressions
    that must hold, or `explain` is stale. sources: ids. Of a number or a sketch, factor: how far
    off, as a ratio, is still right. Of a sketch, points: a query; x, y: its columns; where: picks
    rows; need: how many points must be right. Of a text, need: how many points make it good."""

    id: str
    type: str
    ask: str
    explain: str
    show: str = ""
    hints: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    otherwise: str = ""
    lines: str = ""
    answer: str = ""
    unit: str = ""
    format: str = ",.3g"
    factor: float = 1.25
    slips: tuple[Slip, ...] = ()
    points: str = ""
    x: str = ""
    y: str = ""
    x_label: str = ""
    y_label: str = ""
    where: dict[str, Any] | None = None
    need: int = 0
    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True, slots=True)
class Card:
    """One card. episode: whose recording the macros read unless they say another ("" for none).
    summary: one line for lists. intro: before the questions; takeaway: after them."""

    path: Path
    number: str
    slug: str
    title: str
    level: str
    kind: str
    minutes: int
    summary: str
    intro: str
    takeaway: str
    sources: tuple[Source, ...]
    questions: tuple[Question, ...]
    episode: str = ""
    role: str = "Inference Engineering"

    @property
    def asks_confidence(self) -> bool:
        return self.level != "L1"


def read_all(root: Path) -> list[Card]:
    """The cards of a checkout in the order of their numbers; none where there is no lessons/."""
    cards = [load(path) for path in sorted((root / "lessons").glob("*.toml"))]
    for key in ("number", "slug", "title"):
        seen: dict[str, Path] = {}
        for card in cards:
            value = getattr(card, key)
            if value in seen:
                raise HarnessError(f"{card.path}: {key} {value!r} is that of {seen[value].name}")
            seen[value] = card.path
    return cards


def load(path: Path) -> Card:
    """Reads and validates one card."""
    name = _NAME.fullmatch(path.stem)
    if name is None:
        raise HarnessError(f"{path}: must be named NN-slug.toml, of a-z, 0-9 and -")
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise HarnessError(f"{path}: {error}") from error
    questions = _tables(path, "question", raw.pop("question", []))
    sources = _tables(path, "source", raw.pop("source", []))
    raw |= {"path": path, "number": name[1], "slug": name[2]}
    raw["questions"] = tuple(_question(path, i, each) for i, each in enumerate(questions, 1))
    raw["sources"] = tuple(build(Source, path, f"source[{i}]", s) for i, s in enumerate(sources, 1))
    card = build(Card, path, "card", raw)
    _check(card)
    return card


def _question(path: Path, place: int, raw: dict[str, Any]) -> Question:
    where = f"question[{raw.get('id', place)}]"
    made = dict(raw)
    for key, kind, name in (
        ("option", Option, "options"),
        ("slip", Slip, "slips"),
        ("sample", Sample, "samples"),
    ):
        items = _tables(path, f"{where}.{key}", made.pop(key, []))
        made[name] = tuple(
            build(kind, path, f"{where}.{key}[{i}]", item) for i, item in enumerate(items, 1)
        )
    return build(Question, path, where, made)


def _tables(path: Path, where: str, value: Any) -> list[dict[str, Any]]:
    require(path, where, isinstance(value, list), f"is a list of tables: [[{where}]]")
    return [table(path, where, each) for each in value]


def _check(card: Card) -> None:
    path = card.path
    require(path, "level", card.level in LEVELS, f"is one of {', '.join(LEVELS)}")
    require(path, "kind", card.kind in KINDS, f"is one of {', '.join(KINDS)}")
    require(path, "minutes", 5 <= card.minutes <= 15, "a card takes 5 to 15 minutes")
    require(path, "question", len(card.questions) > 0, "a card has at least one question")
    types = {question.type for question in card.questions}
    needed = NEEDS.get(card.kind, tuple(types))
    require(path, "question", bool(types & set(needed)),
            f"a card of the kind {card.kind} asks for a {' or a '.join(needed)}")  # fmt: skip
    for name, each in (("question", card.questions), ("source", card.sources)):
        ids = [item.id for item in each]
        require(path, name, len(set(ids)) == len(ids), "two have one id")
        require(path, name, all(re.fullmatch(r"[a-z][a-z0-9-]*", i) for i in ids),
                "an id is of a-z, 0-9 and -")  # fmt: skip
    for source in card.sources:
        _check_source(card, source)
    for question in card.questions:
        check_question(card, question)


def _check_source(card: Card, source: Source) -> None:
    where = f"source[{source.id}]"
    needs = {
        "episode": ("episode", "heading"),
        "page": ("page", "heading"),
        "manual": ("title", "url"),
        "paper": ("title", "url"),
        "report": ("title", "url"),
    }
    require(card.path, f"{where}.kind", source.kind in needs, f"is one of {', '.join(needs)}")
    for key in needs[source.kind]:
        require(card.path, f"{where}.{key}", bool(getattr(source, key)), "is missing")
    given = source.url
    good = not given or re.fullmatch(r"https://[^\s/]+\.[^\s/]+(/\S*)?", given) is not None
    require(card.path, f"{where}.url", good, f"{given!r} is no https address")
    used = any(source.id in question.sources for question in card.questions)
    require(card.path, where, used, "no question names it in its `sources`")
