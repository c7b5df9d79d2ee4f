"""A small model on a page: its sliders, its answer, and how well it fits the recording.

    {{ try_it("first_token") }}                        a model of the episode's model.py
    {{ try_it("first_token", vary="prompt_tokens") }}  what the table without scripts varies
    {{ modelled("first_token.ttft_ms", engine="vllm", prompt_tokens=64) }}  one output, as a value

The answers at every setting are computed here and stand in the page as text; the script
(docs/assets/js/try-it.js) only looks them up, so that the formula exists once. Row-major: the first
input varies slowest. With scripts off a table shows some settings.
"""

import inspect
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from markupsafe import Markup

from harness.errors import HarnessError
from harness.render import figure, model, theme
from harness.render.escape import text
from harness.render.model import Fitted, Input, Model, Output, Point
from harness.render.queries import Result

LIMIT_BYTES = 15_000
TABLE_ROWS = 8
ARITHMETIC = (
    '<p class="tbt-fit">Computed alone, from what is set above and in the function below: no'
    " recorded value stands against it.</p>"
)
BETWEEN = "|"  # of the stops of an input, and of the values of an output

Rows = Callable[[str, str], Result]


class TryIt:
    """The models of one page.

    rows: reads a query on a tier and shows it below the page. tier: which one a page means by "".
    """

    def __init__(
        self, paths: list[Path], number: str, rows: Rows, tier: Callable[[str], str]
    ) -> None:
        """paths: files of models; of two with one name that of the first file is meant."""
        self._paths, self._number = paths, number
        self._rows, self._tier = rows, tier

    @property
    def helpers(self) -> dict[str, Any]:
        """The names that a page can use."""
        return {"try_it": self.try_it, "modelled": self.modelled}

    def try_it(self, name: str, vary: str = "", tier: str = "") -> Markup:
        """The model as a form. Raises HarnessError where it is off by more than it declares."""
        fitted = self._fitted(name, tier)
        found = fitted.model
        points = fitted.points(self._rows(found.check, tier)) if found.check else []
        settings = [
            dict(zip((each.name for each in found.inputs), stops, strict=True))
            for stops in product(*(each.stops for each in found.inputs))
        ]
        answers = [fitted(setting) for setting in settings]
        ident = f"try-{self._number}-{name.replace('_', '-')}{f'-{tier}' if tier else ''}"
        form = _form(ident, found, answers)
        if len(form.encode()) > LIMIT_BYTES:
            raise HarnessError(
                f"try_it {name}: {len(settings)} settings make {len(form.encode()):,} bytes, the"
                f" limit is {LIMIT_BYTES:,}: give its inputs fewer stops"
            )
        table = _table(found, fitted, _varied(found, vary))
        return Markup(
            f'\n\n<div class="tbt-block tbt-try" id="{ident}">'
            f'<div class="tbt-kinds">{figure.badges(("computed",), tier)}</div>'
            f"{form}<noscript>{table}</noscript>"
            f'<p class="tbt-formula">{_formula(found)}</p>'
            f"{_fit(found, points, self._tier(tier)) if points else ARITHMETIC}{_origin(found)}"
            "</div>\n\n"
        )

    def modelled(self, place: str, tier: str = "", **given: Any) -> Any:
        """One output at one setting: "model.output". The inputs need be no stops."""
        name, _, output = place.partition(".")
        fitted = self._fitted(name, tier)
        asked = [each.name for each in fitted.model.inputs]
        if sorted(given) != sorted(asked):
            raise HarnessError(f"modelled {place}: takes {', '.join(asked)}")
        found = fitted(given)
        if output not in found:
            raise HarnessError(f"modelled {place}: its outputs are {', '.join(found)}")
        return found[output]

    def _fitted(self, name: str, tier: str) -> Fitted:
        known: dict[str, Model] = {}
        for path in self._paths:
            if path.exists():
                known = model.load(path) | known
        if name not in known:
            files = ", ".join(path.name for path in self._paths)
            raise HarnessError(f"try_it {name}: {files} has no such model")
        constants = known[name].constants
        return Fitted(known[name], self._rows(constants, tier) if constants else None)

    def closing(self) -> list[str]:
        """Nothing of its own: the queries stand there already."""
        return []


def _form(ident: str, of: Model, answers: list[dict[str, Any]]) -> str:
    """The inputs, dead until the script wakes them, and the outputs with all their values."""
    controls = "".join(_control(f"{ident}-{each.name}", each) for each in of.inputs)
    start = 0
    for each in of.inputs:
        start = start * len(each.stops) + each.start
    results = ""
    for output in of.outputs:
        values = [figure.cell_text(answer[output.name], output.fmt) for answer in answers]
        unit = f" {text(output.unit)}" if output.unit else ""
        results += (
            f"<div><dt>{text(output.label)}</dt>"
            f'<dd><span data-values="{_joined(output.name, values)}">{text(values[start])}</span>'
            f"{unit}</dd></div>"
        )
    return (
        f"<fieldset disabled><legend>{text(of.title)}</legend>{controls}</fieldset>"
        f'<dl class="tbt-answer" aria-live="polite" aria-atomic="true">{results}</dl>'
    )


def _joined(name: str, values: list[str]) -> str:
    """Texts as one attribute, which the script takes apart again."""
    if any(BETWEEN in value for value in values):
        raise HarnessError(f"try_it: a value of {name!r} holds {BETWEEN!r}")
    return text(BETWEEN.join(values))


def _control(ident: str, of: Input) -> str:
    """One input. The script reads what it shows from data-stops."""
    shown = [_stop(of, stop) for stop in of.stops]
    stops = f'id="{text(ident)}" data-stops="{_joined(of.name, shown)}"'
    label = f'<label for="{text(ident)}">{text(of.label)}</label>'
    if isinstance(of.stops[0], str):
        options = "".join(
            f'<option value="{place}"{" selected" if place == of.start else ""}>{text(each)}'
            "</option>"
            for place, each in enumerate(shown)
        )
        return f"<div>{label}<select {stops}>{options}</select></div>"
    return (
        f'<div>{label}<input type="range" {stops} min="0" max="{len(shown) - 1}" step="1"'
        f' value="{of.start}" aria-valuetext="{text(shown[of.start])}">'
        f'<output for="{text(ident)}" aria-live="off">{text(shown[of.start])}</output></div>'
    )


def _stop(of: Input, stop: float | str) -> str:
    """A setting as the page shows it, with its unit; engines by their names."""
    said = theme.name(stop) if isinstance(stop, str) else f"{stop:,}"
    return f"{said} {of.unit}" if of.unit else said


def _varied(of: Model, vary: str) -> Input:
    """The input that the static table varies."""
    numbers = [each for each in of.inputs if not isinstance(each.stops[0], str)]
    fitting = [each for each in of.inputs if each.name == vary] if vary else numbers
    if not fitting:
        raise HarnessError(f"try_it {of.name}: no input {vary!r} that its table could vary")
    return fitting[0]


def _table(of: Model, fitted: Fitted, varied: Input) -> str:
    """Some stops of one input, all others at their defaults."""
    defaults = {each.name: each.stops[each.start] for each in of.inputs}
    held = [
        f"{each.label} {_stop(each, each.stops[each.start])}"
        for each in of.inputs
        if each is not varied
    ]
    step = -(-len(varied.stops) // TABLE_ROWS)
    rows = []
    for stop in varied.stops[::step]:
        answer = fitted(defaults | {varied.name: stop})
        rows.append((_stop(varied, stop), *(_said(o, answer[o.name]) for o in of.outputs)))
    heads = [varied.label, *(output.label for output in of.outputs)]
    caption = of.title + (f" Held: {', '.join(held)}." if held else "")
    return figure.table_html(Result(heads, rows), caption=caption)


def _said(output: Output, value: Any) -> str:
    return f"{figure.cell_text(value, output.fmt)} {output.unit}".strip()


def _formula(of: Model) -> str:
    lines = "<br>".join(f"<code>{text(line)}</code>" for line in of.formula.strip().splitlines())
    return f"Formula: {lines}"


def _fit(of: Model, points: list[Point], tier: str) -> str:
    """How far off the model is where something was recorded, and every such point."""
    rests = "Its constants and the points" if of.constants else "The points"
    items = f"<li>{rests}: {figure.badges(('recorded',), tier)}</li>"
    items += "".join(f"<li>{_agreement(output, points)}</li>" for output in of.outputs)
    names = [each.name for each in of.inputs]
    rows = [
        (
            *(point.given[name] for name in names),
            point.output.label,
            point.recorded,
            point.predicted,
            f"{100 * (point.predicted / point.recorded - 1):+.1f}" if point.recorded else "–",
            "fitted" if point.fitted else "check",
        )
        for point in points
    ]
    heads = [*(each.label for each in of.inputs), "what", "recorded", "model", "off by, %", "point"]
    table = figure.table_html(Result(heads, rows), caption="Recorded and computed")
    return (
        f'<ul class="tbt-fit">{items}</ul><details class="tbt-open"><summary>The recorded points'
        f"</summary>{table}</details>"
    )


def _agreement(output: Output, points: list[Point]) -> str:
    """One sentence: the errors of an output, and the largest that is let through."""
    label = f"<strong>{text(output.label)}</strong>"
    if output.within is None:
        return f"{label}: computed only; no recorded value stands against it."
    mine = [point for point in points if point.output == output]
    said = []
    for where, some in (
        ("that its constants were fitted on", [point for point in mine if point.fitted]),
        ("that it had not seen", [point for point in mine if not point.fitted]),
    ):
        if some:
            count, largest, middle = model.spread(some)
            said.append(
                f"{100 * largest:.1f} % at most and {100 * middle:.1f} % in the median of {count}"
                f" recorded points {where}"
            )
    return f"{label} is off by {'; by '.join(said)}. Let through: {100 * output.within:g} %."


def _origin(of: Model) -> str:
    """The formula as it is computed, and the queries that it rests on."""
    from pygments import highlight  # type: ignore[import-untyped]
    from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
    from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

    code = "\n" + inspect.getsource(of.function)
    code = code[code.index("\ndef ") + 1 :]  # without what declares the inputs
    shown = highlight(code, PythonLexer(), HtmlFormatter(nowrap=True)).strip()
    names = ", ".join(f"<code>{text(name)}</code>" for name in (of.constants, of.check) if name)
    read = (
        f" Its constants and the recorded points are read by the queries {names}, which stand at"
        " the end of the page."
    )
    return (
        '<details class="tbt-open"><summary>Where this comes from</summary>'
        "<p>Computed at build from the function below, at every setting of the inputs."
        f'{read if names else ""}</p><div class="highlight"><pre><code>{shown}</code></pre></div>'
        "</details>"
    )
