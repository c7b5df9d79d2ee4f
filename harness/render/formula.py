"""Numbers that a page computes: a formula over named inputs, shown with them below the page.

{{ computed("2 * layers * heads", layers=value("model.layers"), heads=3) }}
"""

import ast
import operator
from typing import Any

from markupsafe import Markup

from harness.errors import HarnessError
from harness.render import escape, figure

OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
}


class Formulas:
    """Those of one page, in the order in which its text has them."""

    def __init__(self) -> None:
        self._notes: list[str] = []

    @property
    def helpers(self) -> dict[str, Any]:
        """The names that a page can use."""
        return {"computed": self.computed}

    def computed(self, formula: str, fmt: str = "", **inputs: float) -> Markup:
        """The value of an arithmetic formula; the formula and its inputs stand below the page."""
        value = evaluate(formula, inputs)
        given = ", ".join(f"{name} = {figure.cell_text(each)}" for name, each in inputs.items())
        note = f"{formula}" + (f" with {given}" if given else "")
        if note not in self._notes:
            self._notes.append(note)
        place = self._notes.index(note) + 1
        return Markup(
            f'<a class="tbt-n tbt-computed" href="#formula-{place}" '
            f'title="computed: {escape.inline(note)}">'
            f"{escape.inline(figure.cell_text(value, fmt))}</a>"
        )

    def closing(self) -> list[str]:
        """For the end of the page: every formula with its inputs."""
        if not self._notes:
            return []
        items = "".join(
            f'<li id="formula-{place}"><code>{escape.text(note)}</code></li>'
            for place, note in enumerate(self._notes, 1)
        )
        return [f'<p>Computed:</p>\n<ol class="tbt-formulas">{items}</ol>\n']


def evaluate(formula: str, inputs: dict[str, float]) -> float:
    """Arithmetic over named inputs: + - * / ** and brackets, nothing else."""

    def visit(node: ast.AST) -> float:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        if isinstance(node, ast.Name) and node.id in inputs:
            return inputs[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](visit(node.left), visit(node.right))
        if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](visit(node.operand))
        raise HarnessError(f"computed {formula!r}: cannot read {ast.unparse(node)!r}")

    try:
        return visit(ast.parse(formula, mode="eval").body)
    except (SyntaxError, ZeroDivisionError, TypeError) as error:
        raise HarnessError(f"computed {formula!r}: {error}") from error
