"""Prompts from a file: which lines a cell takes, in what order, and how a wrong line is called."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError
from harness.experiment import load
from harness.schedule import cells
from harness.texts import of_sweep
from harness.worklist import Work, Worklist
from tests.test_experiment import DECLARATION, write

KEYS = 'texts = "t.jsonl"\ncold = false\nlength_by = "eos"\n'
EDIT = {"id": "e1", "kind": "edit", "prompt": "a b c", "prompt_tokens": 5, "output_tokens": 2}
LINES: list[dict[str, Any]] = [
    EDIT,
    {"id": "p1", "kind": "prose", "prompt": "d", "prompt_tokens": 3, "expected": "yes"},
    {"id": "e2", "kind": "edit", "prompt": "e", "prompt_tokens": 3, "extra": {"top": 1}},
    {"id": "e3", "kind": "edit", "prompt": "f", "prompt_tokens": 3},
]
EXTRAS = {"none": {}, "schema": {"guided": {"type": "object"}}}


def declared(folder: Path, more: str, lines: list[dict[str, Any]]) -> Path:
    (folder / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return write(folder, DECLARATION.replace("[8, 16]", "8") + KEYS + more)


def works(folder: Path, more: str = "", lines: list[dict[str, Any]] = LINES) -> list[list[Work]]:
    """The requests of each cell of the first repeat, where the server adds two tokens."""
    experiment = load(declared(folder, more, lines))
    tier = experiment.tiers["cpu"]
    planned = [cell for cell in cells(experiment, tier, ("a",)) if cell.repeat == 1]
    planned.sort(key=lambda cell: str(cell.level))
    made = [Worklist(cell, tier, experiment.seeds, None, 2, {}, folder) for cell in planned]
    return [list(each) for each in made]


def test_lines_come_in_order_and_the_last_ones_warm_up(tmp_path: Path) -> None:
    ((warm, first, second),) = works(tmp_path)
    assert [(w.phase, w.text_id) for w in (warm, first, second)] == [
        ("warmup", "e3"),
        ("measured", "e1"),
        ("measured", "p1"),
    ]
    assert (first.prompt.text, first.prompt.ids, first.prompt.n_tokens) == ("a b c", None, 3)
    assert (first.output_tokens, second.output_tokens) == (2, 4)
    assert (first.expected, second.expected, first.extra) == ("", "yes", None)


def test_a_kind_has_its_own_lines_and_a_short_file_comes_again(tmp_path: Path) -> None:
    more = 'kinds = ["edit", "prose"]\nmin_requests = 4\n'
    text = DECLARATION.replace("min_requests = 2\n", "")
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    experiment = load(write(tmp_path, text.replace("[8, 16]", "8") + KEYS + more))
    tier = experiment.tiers["cpu"]
    found = {
        cell.level.kind: [
            work.text_id for work in Worklist(cell, tier, experiment.seeds, None, 2, None, tmp_path)
        ]
        for cell in cells(experiment, tier, ("a",))
    }
    assert found == {"edit": ["e3", "e1", "e2", "e3", "e1"], "prose": ["p1"] * 5}


def test_a_level_merges_what_its_lines_have_under_its_name(tmp_path: Path) -> None:
    lines = [line | {"extras": EXTRAS} for line in LINES]
    none, schema = works(tmp_path, 'kinds = ["edit"]\nextra = ["none", "schema"]\n', lines)
    assert [work.extra for work in none[1:]] == [None, {"top": 1}]
    guided = EXTRAS["schema"]
    assert [work.extra for work in schema[1:]] == [guided, {"top": 1} | guided]
    assert [work.prompt for work in none] == [work.prompt for work in schema]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (EDIT | {"prompt_tokens": 9}, r"line 1\.prompt_tokens: not within the 8 of sweep 'length'"),
        (EDIT | {"output_tokens": 5}, r"line 1\.output_tokens: more than the 4 of sweep 'length'"),
        (EDIT | {"kind": "odd", "extras": EXTRAS}, "no line of kind 'edit'"),
        (EDIT | {"prompts": "x"}, r"unknown key line 1\.prompts"),
        (EDIT | {"extra": 3}, r"line 1\.extra: must be an object"),
        (EDIT | {"extras": {"none": 3}}, r"line 1\.extras\.none: must be an object"),
        (EDIT | {"extras": {"one": {}}}, r"line 1\.extras: lacks none"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: dict[str, Any], named: str) -> None:
    experiment = load(declared(tmp_path, 'kinds = ["edit"]\nextra = ["none"]\n', [line]))
    (sweep,) = experiment.tiers["cpu"].sweeps
    with pytest.raises(HarnessError, match=rf"t\.jsonl.*{named}"):
        of_sweep(sweep, tmp_path)


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    (sweep,) = load(declared(tmp_path, "", [])).tiers["cpu"].sweeps
    with pytest.raises(HarnessError, match=r"t\.jsonl: kind: no line"):
        of_sweep(sweep, tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(HarnessError, match=r"other/t\.jsonl: cannot be read"):
        of_sweep(sweep, other)
    (other / "t.jsonl").write_text("{")
    with pytest.raises(HarnessError, match=r"other/t\.jsonl: line 1 is not JSON"):
        of_sweep(sweep, other)
