import math
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.render.model import Fitted, Input, Model, Output, load, model, spread
from harness.render.queries import Result


def made(within: float | None = 0.5) -> Model:
    """wait = base + 2 * tokens; base comes from the recording, by engine."""

    def wait(tokens: float, base_ms: float) -> dict[str, float]:
        """How long?"""
        return {"wait_ms": base_ms + 2 * tokens, "half_ms": base_ms / 2 + tokens}

    return model(
        formula="wait = base + 2 × tokens",
        inputs=[Input("engine", "Engine", ["a", "b"]), Input("tokens", "Tokens", [1, 10])],
        outputs=[Output("wait_ms", "Wait", "ms", within=within), Output("half_ms", "Half", "ms")],
        constants="fit",
        check="points",
    )(wait)


def fitted() -> Fitted:
    return Fitted(made(), Result(["engine", "base_ms"], [("a", 100.0), ("b", 200.0)]))


def points(*rows: tuple) -> Result:
    return Result(["engine", "tokens", "wait_ms", "part"], list(rows))


FIT = ("a", 1, 102.0, "fit")


def test_the_constants_of_a_setting_are_those_of_its_row() -> None:
    assert fitted()({"engine": "a", "tokens": 10}) == {"wait_ms": 120, "half_ms": 60}
    assert fitted()({"engine": "b", "tokens": 10}) == {"wait_ms": 220, "half_ms": 110}


def test_errors_are_relative_to_what_was_recorded() -> None:
    found = fitted().points(points(FIT, ("a", 10, 100.0, "check"), ("b", 10, 275.0, "check")))
    assert [point.error_frac for point in found] == pytest.approx([0, 0.2, 0.2])
    assert [point.fitted for point in found] == [True, False, False]
    assert spread(found) == (3, pytest.approx(0.2), pytest.approx(0.2))


def test_a_recorded_zero_is_met_exactly_or_not_at_all() -> None:
    exact = Fitted(made(), Result(["engine", "base_ms"], [("a", -20.0)]))
    row = points(("a", 10, 0.0, "check"))
    assert exact.points(row)[0].error_frac == 0
    with pytest.raises(HarnessError, match="off by inf%"):
        fitted().points(row)


def test_what_was_not_recorded_at_a_point_is_no_point() -> None:
    rows = points(FIT, ("a", 10, 120.0, "check"), ("b", 1, None, "check"))
    assert len(fitted().points(rows)) == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (points(("a", 10, 240.1, "check")), r"engine = a, tokens = 10: wait_ms is 120, .* 50\.0%"),
        (points(FIT), "no point for 'wait_ms' but those"),
        (points(FIT, ("a", 1, 102.0, "check")), "no point for 'wait_ms' but those"),
        (points(("a", 1, 102.0, "new")), "part is 'fit' or 'check'"),
        (points(("c", 1, 102.0, "check")), "the query 'fit' has no row for it"),
        (Result(["engine", "tokens", "part"], []), "lacks the column 'wait_ms'"),
    ],
)
def test_a_model_that_does_not_fit_stops_the_build(rows: Result, message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        fitted().points(rows)


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        (Result(["engine"], [("a",)]), "'base_ms' is neither an input nor a constant"),
        (Result(["base_ms"], [(1.0,)]), "'engine' is an input that nothing uses"),
        (Result(["engine", "base_ms"], [("a", 1.0), ("a", 2.0)]), "two rows of 'fit'"),
    ],
)
def test_names_must_meet(constants: Result, message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        Fitted(made(), constants)


def _broken(what: object) -> Model:
    def f(tokens: float) -> dict:
        """Title."""
        return {"wait_ms": 1 / 0} if what is ZeroDivisionError else {str(what): math.inf}

    inputs = [Input("tokens", "Tokens", [1])]
    outputs = [Output("wait_ms", "Wait", within=1.0)]
    return model(formula="", inputs=inputs, outputs=outputs, check="points")(f)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (ZeroDivisionError, "tokens = 1: ZeroDivisionError"),
        ("other", r"it gives \['other'\], declared are \['wait_ms'\]"),
        ("wait_ms", "wait_ms is inf: return None or a text"),
    ],
)
def test_a_formula_that_fails_names_the_setting(what: object, message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        Fitted(_broken(what), None)({"tokens": 1})


def test_a_declaration_without_a_check_a_title_or_a_default_is_refused() -> None:
    with pytest.raises(HarnessError, match="nothing holds it against"):
        made(within=None)
    with pytest.raises(HarnessError, match="needs a docstring"):
        model(formula="", inputs=[], outputs=[Output("a", "A", within=0)], check="")(lambda: {})
    odd = [Input("tokens", "Tokens", [1, 2], default=3)]
    with pytest.raises(HarnessError, match="default of 'tokens' is none"):
        model(formula="", inputs=odd, outputs=[Output("a", "A", within=0)], check="")(dict)
    none = [Input("tokens", "Tokens", [])]
    with pytest.raises(HarnessError, match="model 'dict': the input 'tokens' has no stops"):
        model(formula="", inputs=none, outputs=[Output("a", "A", within=0)], check="")(dict)


def test_a_file_gives_its_models_and_a_fault_its_name(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    with pytest.raises(HarnessError, match=r"model\.py is missing"):
        load(path)
    path.write_text("import nothing_there\n")
    with pytest.raises(HarnessError, match=r"model\.py: ModuleNotFoundError"):
        load(path)


def test_plain_arithmetic_needs_no_recording() -> None:
    def double(a: float) -> dict[str, float]:
        """Twice?"""
        return {"b": 2 * a}

    inputs = [Input("a", "A", [1, 2])]
    plain = model(formula="b = 2 a", inputs=inputs, outputs=[Output("b", "B")])(double)
    assert plain.check == "" and Fitted(plain, None)({"a": 2}) == {"b": 4}
    with pytest.raises(HarnessError, match="no `check` gives its recorded points"):
        model(formula="", inputs=inputs, outputs=[Output("b", "B", within=0.1)])(double)
