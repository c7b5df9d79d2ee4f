"""The key of a question: worked out from the recordings, and held against what the card says.

A key that the recording no longer gives, or a claim of an explanation that no longer holds, stops
the build and names the question: the text beside it is stale.
"""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from harness.errors import HarnessError
from harness.render.cards import grading
from harness.render.cards.card import Question
from harness.render.cards.text import CardText

MOST_POINTS = 8


@dataclass(frozen=True, slots=True)
class Key:
    """data: the data- attributes by which the browser grades. places: of an order, the options as
    they are shown. lines: of a line question, as the engine or the file has them. marked: of these,
    the option that each is, by place; -1 for none. points: of a sketch, the recorded x and y.
    answer: of a number, with its unit."""

    data: dict[str, str]
    places: tuple[int, ...] = ()
    lines: tuple[str, ...] = ()
    marked: tuple[int, ...] = ()
    points: tuple[tuple[float, float], ...] = ()
    answer: str = ""
    slips: tuple[grading.Band, ...] = field(default=())


def work_out(text: CardText, question: Question) -> Key:
    """Raises HarnessError naming file, question and key where the recording disagrees."""
    where = f"question[{question.id}]"
    for place, claim in enumerate(question.claims, 1):
        if not text.holds(f"{where}.claims[{place}]", claim):
            raise HarnessError(
                f"{text.card.path}: {where}.claims[{place}]: no longer holds: {claim}: the"
                " explanation is stale"
            )
    made = {
        "single": _chosen,
        "multi": _chosen,
        "number": _number,
        "order": _order,
        "line": _line,
        "sketch": _sketch,
        "text": _text,
    }[question.type]
    return made(text, question, where)


def digest(question: Question, key: Key) -> str:
    """Of all that grades a question: an answer kept in a browser is void when it changes."""
    graded = [question.type, question.ask, [option.text for option in question.options]]
    content = json.dumps([*graded, sorted(key.data.items())])
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def _chosen(text: CardText, question: Question, where: str) -> Key:
    for place, option in enumerate(question.options, 1):
        if not option.when:
            continue
        at = f"{where}.option[{place}].when"
        if text.holds(at, option.when) != option.right:
            now = "wrong" if option.right else "right"
            raise HarnessError(
                f"{text.card.path}: {at}: by the recording this option is now {now}: {option.when}:"
                " its why is stale"
            )
    right = [str(i) for i, option in enumerate(question.options) if option.right]
    return Key({"key": " ".join(right)})


def _number(text: CardText, question: Question, where: str) -> Key:
    answer = text.number(f"{where}.answer", question.answer)
    values = [
        text.number(f"{where}.slip[{i}].value", each.value)
        for i, each in enumerate(question.slips, 1)
    ]
    try:
        accepted = grading.band(answer, question.factor)
        slips = grading.slip_bands(answer, question.factor, values)
        shown = format(answer, question.format)
    except (HarnessError, ValueError) as error:
        raise HarnessError(f"{text.card.path}: {where}: {error}") from error
    data = _band_data(accepted) | {"units": json.dumps(grading.units(question.unit))}
    return Key(data, answer=f"{shown} {question.unit}".strip(), slips=tuple(slips))


def _order(text: CardText, question: Question, where: str) -> Key:
    values = [
        text.number(f"{where}.option[{i}].by", option.by)
        for i, option in enumerate(question.options, 1)
    ]
    if not grading.rises(values):
        raise HarnessError(
            f"{text.card.path}: {where}: by the recording its options no longer rise in this order:"
            f" {', '.join(f'{value:.4g}' for value in values)}"
        )
    count = len(question.options)
    mixed = sorted(range(count), key=lambda i: _mixing(question.id, question.options[i].text))
    if mixed == list(range(count)):
        mixed.reverse()
    return Key({"key": " ".join(str(i + 1) for i in mixed)}, places=tuple(mixed))


def _line(text: CardText, question: Question, where: str) -> Key:
    shown = text.raw(f"{where}.lines", question.lines).split("\n")
    lines = [line for line in shown if line.strip()]
    marked = [-1] * len(lines)
    for place, option in enumerate(question.options):
        found = [i for i, line in enumerate(lines) if option.find in line]
        if len(found) != 1 or marked[found[0]] != -1:
            raise HarnessError(
                f"{text.card.path}: {where}.option[{place + 1}].find: {option.find!r} stands in"
                f" {len(found)} lines, or in that of another option: it must tell one line"
            )
        marked[found[0]] = place
    if -1 in marked and not question.otherwise:
        raise HarnessError(
            f"{text.card.path}: {where}.otherwise: is missing, and line {marked.index(-1) + 1} is"
            " no option"
        )
    right = marked.index([option.right for option in question.options].index(True))
    return Key({"key": str(right)}, lines=tuple(lines), marked=tuple(marked))


def _sketch(text: CardText, question: Question, where: str) -> Key:
    rows: list[dict[str, Any]] = text.value(f"{where}.points", f"rows({question.points!r})")
    wanted = question.where or {}
    try:
        found = [
            (float(row[question.x]), float(row[question.y]))
            for row in rows
            if all(row[column] == value for column, value in wanted.items())
        ]
    except (KeyError, TypeError) as error:
        raise HarnessError(f"{text.card.path}: {where}: no number in the column {error}") from error
    if not 2 <= len(found) <= MOST_POINTS or not question.need <= len(found):
        raise HarnessError(
            f"{text.card.path}: {where}.points: {len(found)} rows; a sketch has 2 to {MOST_POINTS},"
            " and `need` is at most as many"
        )
    points = []
    for x, y in found:
        near = grading.band(y, question.factor)
        points.append([x, y, near.low, near.high])
    data = {
        "points": json.dumps(points),
        "units": json.dumps(grading.units(question.unit)),
        "need": str(question.need),
    }
    return Key(data, points=tuple(found))


def _text(text: CardText, question: Question, where: str) -> Key:
    return Key({"need": str(question.need)})


def _band_data(of: grading.Band) -> dict[str, str]:
    return {"low": f"{of.low:.9g}", "high": f"{of.high:.9g}"}


def _mixing(ident: str, said: str) -> str:
    """A fixed disorder, that nobody chose."""
    return hashlib.sha256(f"{ident}\0{said}".encode()).hexdigest()
