"""A card's text and expressions -> HTML and values, by the macros of the episodes.

Every macro reads the recording of the card's episode, or of the one that it names: n("knee.times",
engine="vllm", episode="03"). Queries and models of a card's own stand beside it in NN-slug.sql and
NN-slug.py; its queries read the recording of the card's episode. What cards have more:

    {{ given("24 GB") }}      a number that the question sets, which nobody measured
    {{ answer }}              in the explanation of a number: the right one, with its unit
    {{ rows("log_lines") }}   the rows of a query, for a loop
    {{ modelled("reuse.ttft_ms", ...) }}   of a small model, one output
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import markdown  # type: ignore[import-untyped]
from jinja2 import Environment, StrictUndefined, TemplateError
from markupsafe import Markup

from harness.errors import HarnessError
from harness.render import escape, queries
from harness.render.cards.card import Card
from harness.render.formula import Formulas
from harness.render.prose import Prose, finalize
from harness.render.registry import Chapter
from harness.render.source import Source

EXTENSIONS = ["attr_list", "md_in_html", "tables", "pymdownx.highlight", "pymdownx.superfences"]
# What reads a recording, so that it can be that of another episode than the card's.
_BY_EPISODE = (
    "n", "value", "figure", "table", "declared", "recorded", "not_recorded", "rows", "try_it",
    "modelled",
)  # fmt: skip

Recorded = dict[str, tuple[Chapter, dict[str, Source]]]


@dataclass(slots=True)
class CardProse(Prose):
    """What a card refers to of one episode. beside: the card's file; None: of another episode than
    the card's own, whose queries and models are then left out."""

    beside: Path | None = None

    @property
    def _models(self) -> list[Path]:
        own = [self.beside.with_suffix(".py")] if self.beside else []
        return [*own, self.folder / "model.py"]

    def rows(self, name: str, tier: str = "") -> list[dict[str, Any]]:
        """The rows of a query."""
        return self._cited_rows(name, tier).records()

    def closing(self) -> str:
        """Where the numbers come from."""
        return self._numbers("##").partition("\n\n")[2].partition("\n")[2] if self.sources else ""

    @property
    def macros(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in _BY_EPISODE if hasattr(self, name)}
        for part in self._parts:
            found |= part.helpers
        return found

    def _query(self, name: str) -> queries.Query:
        own = self.beside.with_suffix(".sql") if self.beside else None
        if own is not None and own.exists():
            known = queries.parse(own.read_text(encoding="utf-8"), f"lessons/{own.name}")
            if name in known:
                return known[name]
        return Prose._query(self, name)

    def _place(self, tier: str, query: str = "") -> str:
        return f"{self.chapter.number}-{Prose._place(self, tier, query)}"


class CardText:
    """The text of one card. root, kept: as of Prose. recorded: of each episode what there is."""

    def __init__(self, card: Card, root: Path, recorded: Recorded, kept: queries.Cache) -> None:
        self.card = card
        self._root, self._recorded, self._kept = root, recorded, kept
        self._proses: dict[str, CardProse] = {}
        self._formulas = Formulas()
        self._markdown = markdown.Markdown(extensions=EXTENSIONS)

    def html(self, key: str, source: str, **given: Any) -> str:
        """Markdown with macros as HTML. key: where it stands, for errors."""
        text = self._rendered(key, source, given)
        self._markdown.reset()
        return str(self._markdown.convert(text)).strip()

    def line(self, key: str, source: str, **given: Any) -> str:
        """One paragraph as HTML without its <p>. Raises HarnessError where it is more."""
        made = self.html(key, source, **given)
        found = re.fullmatch(r"<p>(.*)</p>", made, re.DOTALL)
        if found is None or "<p>" in found[1]:
            raise HarnessError(f"{self.card.path}: {key}: is one paragraph of text")
        return found[1]

    def raw(self, key: str, source: str) -> str:
        """Macros filled in and nothing escaped: for lines that are shown as they were written."""
        environment = Environment(undefined=StrictUndefined, autoescape=False)
        try:
            return environment.from_string(source).render(self._names())
        except (HarnessError, TemplateError) as error:
            raise self._fault(key, error) from error

    def value(self, key: str, expression: str) -> Any:
        """What an expression comes to."""
        environment = Environment(undefined=StrictUndefined)
        try:
            found = environment.compile_expression(expression, undefined_to_none=False)
            return found(**self._names())
        except (HarnessError, TemplateError, TypeError, ArithmeticError) as error:
            raise self._fault(key, error) from error

    def number(self, key: str, expression: str) -> float:
        """An expression that comes to a number."""
        found = self.value(key, expression)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise HarnessError(f"{self.card.path}: {key}: {expression!r} is {found!r}, no number")
        return float(found)

    def holds(self, key: str, expression: str) -> bool:
        """An expression that comes to true or false."""
        found = self.value(key, expression)
        if not isinstance(found, bool):
            raise HarnessError(f"{self.card.path}: {key}: {expression!r} is {found!r}, no truth")
        return found

    @property
    def data(self) -> dict[str, str]:
        """The JSON files of all figures that the card shows."""
        return {name: data for each in self._proses.values() for name, data in each.data.items()}

    def closing(self) -> str:
        """Where the numbers come from, of every episode that the card reads."""
        parts = [each.closing() for each in self._proses.values()] + self._formulas.closing()
        return "\n".join(parts)

    def _rendered(self, key: str, source: str, given: dict[str, Any]) -> str:
        environment = Environment(autoescape=True, undefined=StrictUndefined, finalize=finalize)
        try:
            return environment.from_string(source).render(self._names() | given)
        except (HarnessError, TemplateError) as error:
            raise self._fault(key, error) from error

    def _names(self) -> dict[str, Any]:
        own = self._prose(self.card.episode).macros if self.card.episode else {}
        shared = {name: partial(self._of_episode, name) for name in _BY_EPISODE}
        return own | self._formulas.helpers | shared | {"given": given, "cited": Prose.cited}

    def _of_episode(self, macro: str, *args: Any, episode: str = "", **more: Any) -> Any:
        number = episode or self.card.episode
        if not number:
            raise HarnessError(f"{macro}: say of which episode: episode=..., or of the whole card")
        called: Callable[..., Any] = self._prose(number).macros[macro]
        return called(*args, **more)

    def _prose(self, number: str) -> CardProse:
        if number not in self._proses:
            if number not in self._recorded:
                raise HarnessError(f"episode: there is no episode {number!r}")
            chapter, sources = self._recorded[number]
            if not sources:
                raise HarnessError(f"episode: {number} has no recording yet")
            beside = self.card.path if number == self.card.episode else None
            made = CardProse(self._root, chapter, sources, self._kept, beside=beside)
            self._proses[number] = made
        return self._proses[number]

    def _fault(self, key: str, error: Exception) -> HarnessError:
        return HarnessError(f"{self.card.path}: {key}: {error}")


def given(said: str) -> Markup:
    """A number of the question's own."""
    return Markup(
        f'<span class="tbt-declared" title="set by the question">{escape.inline(said)}</span>'
    )
