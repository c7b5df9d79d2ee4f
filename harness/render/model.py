"""A small model: a formula over a few inputs, held against the recording.

An episode's model.py has one function a model, which the page shows by {{ try_it("name") }}:

    @model(
        formula="TTFT = base + per token × prompt tokens",
        inputs=[
            Input("engine", "Engine", ["vllm", "sglang"]),
            Input("prompt_tokens", "Prompt", [32, 64, 128], unit="tokens"),
        ],
        outputs=[Output("ttft_ms", "Time to first token", "ms", ",.0f", within=0.3)],
        constants="model_fit",
        check="model_points",
    )
    def first_token(prompt_tokens: float, base_ms: float, per_token_ms: float) -> dict[str, float]:
        "How long until the first token?"
        return {"ttft_ms": base_ms + per_token_ms * prompt_tokens}

What a constant of the machine is comes from a query, never from a hand. Its columns that are named
like an input (engine) pick the row; each other column is a constant. The query of the points has
every input, `part` ('fit': the constants were fitted on it, or 'check') and, for each output that
has a `within`, the recorded value in a column of its name (NULL: not recorded there).
"""

import importlib.util
import inspect
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.render.queries import Result

ROUNDING = 1e-9  # of floats: a share that must be met exactly may come out of another division
Value = float | str | None
Formula = Callable[..., dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Input:
    """What the reader sets. stops: numbers make a slider, texts a list. default: else the first."""

    name: str
    label: str
    stops: Sequence[float | str]
    default: float | str | None = None
    unit: str = ""

    @property
    def start(self) -> int:
        """Place of the default among the stops."""
        return 0 if self.default is None else list(self.stops).index(self.default)


@dataclass(frozen=True, slots=True)
class Output:
    """What the model says. within: the largest relative error that it may make at a recorded
    point; None where nothing was recorded to hold it against."""

    name: str
    label: str
    unit: str = ""
    fmt: str = ""
    within: float | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """One model. title: its question. constants and check: names of queries, "" for none. Without
    a check it is plain arithmetic over its inputs, which no recording bears out; a page says so."""

    name: str
    title: str
    formula: str
    inputs: Sequence[Input]
    outputs: Sequence[Output]
    constants: str
    check: str
    function: Formula


@dataclass(frozen=True, slots=True)
class Point:
    """One recorded value of one output, and the one predicted. fitted: the constants rest on it."""

    given: dict[str, Any]
    output: Output
    fitted: bool
    recorded: float
    predicted: float

    @property
    def error_frac(self) -> float:
        """|predicted - recorded| / |recorded|; of two zeros 0, of a recorded zero infinite."""
        off = abs(self.predicted - self.recorded)
        return off / abs(self.recorded) if self.recorded else math.inf if off else 0.0


def model(
    *,
    formula: str,
    inputs: Sequence[Input],
    outputs: Sequence[Output],
    check: str = "",
    constants: str = "",
) -> Callable[[Formula], Model]:
    """Makes a Model of the function below it. Raises HarnessError naming the model."""

    def made(function: Formula) -> Model:
        name = function.__name__
        title = (inspect.getdoc(function) or "").partition("\n")[0]
        fault = "needs a docstring, whose first line is its title" if not title else ""
        for each in inputs:
            if not each.stops:
                fault = f"the input {each.name!r} has no stops"
            elif each.default is not None and each.default not in each.stops:
                fault = f"the default of {each.name!r} is none of its stops"
        held = any(each.within is not None for each in outputs)
        if check and not held:
            fault = "no output has a `within`, so nothing holds it against the recording"
        elif held and not check:
            fault = fault or "an output has a `within`, and no `check` gives its recorded points"
        if fault:
            raise HarnessError(f"model {name!r}: {fault}")
        return Model(name, title, formula, inputs, outputs, constants, check, function)

    return made


def load(path: Path) -> dict[str, Model]:
    """The models of a model.py by name. Raises HarnessError naming the file."""
    spec = importlib.util.spec_from_file_location(f"model_{path.parent.name}", path)
    if not path.exists() or spec is None or spec.loader is None:
        raise HarnessError(f"{path} is missing")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise HarnessError(f"{path}: {type(error).__name__}: {error}") from error
    return {each.name: each for each in vars(module).values() if isinstance(each, Model)}


class Fitted:
    """A model with the constants of one recording."""

    def __init__(self, of: Model, rows: Result | None) -> None:
        """rows: of the query of the constants. Raises HarnessError where the names don't fit."""
        names = [each.name for each in of.inputs]
        columns = rows.columns if rows else []
        self.model = of
        self.keys = [name for name in columns if name in names]
        records = rows.records() if rows else [{}]
        self._constants = {
            tuple(row.pop(key) for key in self.keys): row for row in map(dict, records)
        }
        if len(self._constants) != len(records):
            raise HarnessError(f"model {of.name!r}: two rows of {of.constants!r} have one key")
        self._asked = list(inspect.signature(of.function).parameters)
        unknown = set(self._asked) - {*names, *columns}
        unused = set(names) - {*self._asked, *self.keys}
        if unknown or unused:
            raise HarnessError(
                f"model {of.name!r}: {sorted(unknown or unused)[0]!r} is "
                + ("neither an input nor a constant" if unknown else "an input that nothing uses")
            )

    def __call__(self, given: dict[str, Any]) -> dict[str, Value]:
        """The outputs at one setting of the inputs."""
        key = tuple(given[name] for name in self.keys)
        if key not in self._constants:
            raise self._fault(given, f"the query {self.model.constants!r} has no row for it")
        known = self._constants[key] | given
        try:
            found = self.model.function(**{name: known[name] for name in self._asked})
        except Exception as error:
            raise self._fault(given, f"{type(error).__name__}: {error}") from error
        wanted = [output.name for output in self.model.outputs]
        if sorted(found) != sorted(wanted):
            raise self._fault(given, f"it gives {sorted(found)}, declared are {sorted(wanted)}")
        for name, value in found.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise self._fault(given, f"{name} is {value}: return None or a text there")
        return found

    def points(self, rows: Result) -> list[Point]:
        """The recorded values beside the predicted ones. Raises HarnessError where a column lacks,
        where an output is held against fitted points alone, or is off by more than it may."""
        checked = [output for output in self.model.outputs if output.within is not None]
        names = [each.name for each in self.model.inputs]
        lacking = {"part", *names, *(output.name for output in checked)} - set(rows.columns)
        if lacking:
            raise HarnessError(f"query {self.model.check!r}: lacks the column {min(lacking)!r}")
        found = []
        for row in rows.records():
            if row["part"] not in ("fit", "check"):
                raise HarnessError(f"query {self.model.check!r}: part is 'fit' or 'check'")
            given = {name: row[name] for name in names}
            predicted = self(given)
            for output in checked:
                if row[output.name] is not None:
                    point = self._point(given, output, row, predicted[output.name])
                    found.append(point)
        for output in checked:
            self._must_be_new(output, found)
        return found

    def _point(
        self, given: dict[str, Any], output: Output, row: dict[str, Any], predicted: Value
    ) -> Point:
        if not isinstance(predicted, int | float):
            raise self._fault(given, f"{output.name} is {predicted!r}, and a value was recorded")
        point = Point(given, output, row["part"] == "fit", float(row[output.name]), predicted)
        if output.within is not None and point.error_frac > output.within + ROUNDING:
            raise self._fault(
                given,
                f"{output.name} is {predicted:.4g}, recorded was {point.recorded:.4g}: off by"
                f" {point.error_frac:.1%}, declared within {output.within:.1%}",
            )
        return point

    def _must_be_new(self, output: Output, points: list[Point]) -> None:
        """Some of its points must be ones that no constant was fitted on."""
        mine = [point for point in points if point.output == output]
        fitted = [point.given for point in mine if point.fitted]
        if not any(not point.fitted and point.given not in fitted for point in mine):
            raise HarnessError(
                f"model {self.model.name!r}: query {self.model.check!r} has no point for"
                f" {output.name!r} but those that the constants were fitted on"
            )

    def _fault(self, given: dict[str, Any], said: str) -> HarnessError:
        place = ", ".join(f"{name} = {value}" for name, value in given.items())
        return HarnessError(f"model {self.model.name!r} at {place}: {said}")


def spread(points: list[Point]) -> tuple[int, float, float]:
    """Of the relative errors: how many, the largest, the median. Needs at least one point."""
    errors = [point.error_frac for point in points]
    return len(errors), max(errors), statistics.median(errors)
