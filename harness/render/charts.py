"""An episode's charts.py: functions from rows to a plotly figure, found without being imported.

A chart is a public function with a docstring, whose first line names the picture for those who
cannot see it. Its parameters are names of queries, and it gets each as a DataFrame; a parameter
`rows` means the query that has the chart's own name, and `tier` the machine tier as text.
Reading the parameters from the source alone lets an unchanged figure come from the cache without
plotly ever being loaded.
"""

import ast
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import HarnessError


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart function. parameters: in order, as written. title: first line of its docstring."""

    name: str
    title: str
    parameters: tuple[str, ...]

    @property
    def queries(self) -> list[str]:
        return [self.name if p == "rows" else p for p in self.parameters if p != "tier"]


def parse(path: Path) -> tuple[str, dict[str, Chart]]:
    """The source of a charts.py and its charts by name; nothing where there is no such file."""
    if not path.exists():
        return "", {}
    source = path.read_text(encoding="utf-8")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise HarnessError(f"{path}:{error.lineno}: {error.msg}") from error
    charts = {}
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        docstring = ast.get_docstring(node)
        if not docstring:
            raise HarnessError(f"{path}:{node.lineno}: chart {node.name!r} needs a docstring")
        parameters = tuple(argument.arg for argument in node.args.args)
        charts[node.name] = Chart(node.name, docstring.splitlines()[0], parameters)
    return source, charts


def call(path: Path, chart: Chart, frames: dict[str, Any], tier: str) -> Any:
    """Imports the file and draws one chart; errors name the file and the chart."""
    spec = importlib.util.spec_from_file_location(f"charts_{path.parent.name}", path)
    if spec is None or spec.loader is None:
        raise HarnessError(f"{path}: cannot be imported")
    module = importlib.util.module_from_spec(spec)
    given = [
        tier if parameter == "tier" else frames[chart.name if parameter == "rows" else parameter]
        for parameter in chart.parameters
    ]
    try:
        spec.loader.exec_module(module)
        return getattr(module, chart.name)(*given)
    except Exception as error:
        raise HarnessError(
            f"{path}: chart {chart.name!r} fails: {type(error).__name__}: {error}"
        ) from error
