"""Episode 06's queries on hand-made rows: acceptance, tokens of a pass, equality, forms, labels."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.render import queries
from tests.recording.conftest import MS, cell, create, request

FILE = next((Path(__file__).parents[2] / "episodes").glob("06-*/queries.sql"))
SCHEMA = {"properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
FORMS = [  # form, what is expected, answer, whether it obeys
    ("json", json.dumps(SCHEMA), '{"age": 3, "name": "Ann"}', True),
    ("json", json.dumps(SCHEMA), '{"name": "Ann"}', False),
    ("json", json.dumps(SCHEMA), '{"name": "Ann", "age": "3"}', False),
    ("json", json.dumps(SCHEMA), 'Here: {"name": "Ann", "age": 3}', False),
    ("json", json.dumps(SCHEMA), "7", False),
    ("regex", "[0-9]{2}:[0-9]{2}", "07:30", True),
    ("regex", "[0-9]{2}:[0-9]{2}", "at 07:30", False),
    ("choice", "yes|no", "no", True),
    ("choice", "yes|no", "nothing", False),
]
LABELS = [  # extra, expected, answer, strict, lenient
    ("free", "positive", "Positive.", True, True),
    ("free", "negative", "It is negative, not positive.", False, True),
    ("free", "sport", "Food, not sport", False, False),
    ("choice", "food", "food", True, True),
    ("json", "money", '{"label": "money"}', True, True),
    ("json", "money", '{"label": "mon', False, False),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recording = create(tmp_path_factory.mktemp("made") / "r.duckdb")
    with recording.transaction():
        flag = '{"method":"eagle3","num_speculative_tokens":2}'
        for run_id, variant, argv in (
            (1, "vllm", []),
            (2, "eagle", ["--speculative-config", flag]),
        ):
            run = {"run_id": run_id, "session_id": 1, "engine": "vllm", "variant": variant}
            run |= {"model_id": "m", "argv": argv, "env": {}, "started_ns": 0}
            recording.insert("engine_run", [run])
        _speculation(recording)
        _equality(recording)
        _forms(recording)
    recording.close()
    return recording.path


def _speculation(recording: Any) -> None:
    """Ten tokens after the first in ten passes of 8 ms; the other side in four passes of 10 ms.
    Four proposals of two: the first place was accepted three times, the second twice."""
    for cell_id, variant, chunks, gap_us in (
        (1, "vllm", [1] * 11, 8000),
        (2, "eagle", [1, 3, 3, 2, 2], 10_000),
    ):
        keys = {"variant": variant, "run_id": cell_id, "sweep": "alone", "kind": "prose"}
        recording.insert("cell", [cell(cell_id, **keys)])
        told = {"chunk_tokens": chunks, "chunk_shared": [False] * len(chunks), "output_tokens": 11}
        told |= {"chunk_gap_us": [gap_us] * (len(chunks) - 1), "text_id": "prose-01"}
        recording.insert("request", [request(cell_id, 1, **told)])
    counters = {"drafts": 4, "draft_tokens": 8, "accepted_tokens": 5}
    rows = [(f"vllm:spec_decode_num_{name}_total", "engine=0", n) for name, n in counters.items()]
    by_place = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    rows += [(by_place, f"engine=0,position={place}", n) for place, n in ((0, 3), (1, 2))]
    for t_ns in (0, MS):
        recording.insert("scrape", [{"run_id": 2, "cell_id": 2, "t_ns": t_ns, "took_ns": 1}])
        for name, labels, gain in rows:
            value = 10.0 + (gain if t_ns else 0)
            row = {"run_id": 2, "cell_id": 2, "t_ns": t_ns, "name": name, "labels": labels}
            recording.insert("engine_metric", [row | {"value": value}])


def _equality(recording: Any) -> None:
    """Two prompts: the first has the same tokens, the second parts at its second token."""
    answers = {
        "vllm": ([" a", " b"], [" c", " d", " e"]),
        "eagle": ([" a", " b"], [" c", " x", " e"]),
    }
    for cell_id, (variant, told) in enumerate(answers.items(), start=3):
        keys = {"variant": variant, "run_id": cell_id - 2, "sweep": "greedy"}
        recording.insert("cell", [cell(cell_id, **keys)])
        for number, tokens in enumerate(told, start=1):
            gaps = [2.0, 0.25, 1.0][: len(tokens)]
            row = {"token_text": tokens, "token_gap": gaps, "text_id": f"t-{number}"}
            recording.insert("request", [request(cell_id, number, **row)])


def _forms(recording: Any) -> None:
    keys = {"variant": "vllm", "sweep": "bound", "extra": "bound"}
    recording.insert("cell", [cell(5, **keys)])
    for number, (form, expected, answer, _) in enumerate(FORMS, start=1):
        row = {"text_id": f"{form}-{number}-first", "expected": expected, "output_text": answer}
        recording.insert("request", [request(5, number, **row)])
    for cell_id, extra in enumerate(("free", "choice", "json"), start=6):
        keys = {"variant": "vllm", "sweep": "labelled", "kind": "topic", "extra": extra}
        recording.insert("cell", [cell(cell_id, **keys)])
        for number, (of, expected, answer, *_) in enumerate(LABELS, start=1):
            row = {"text_id": f"x-{number}", "expected": expected, "output_text": answer}
            if of == extra:
                recording.insert("request", [request(cell_id, number, **row)])


def rows(path: Path, name: str) -> list[dict[str, Any]]:
    query = queries.parse(FILE.read_text(encoding="utf-8"), "queries.sql")[name]
    return queries.run(path, query, "queries.sql").records()


def test_acceptance_is_counted_by_place_of_all_proposals(path: Path) -> None:
    found = [
        (row["position"], row["accepted_percent"], row["conditional_percent"])
        for row in rows(path, "acceptance")
    ]
    assert found == [(1, 75.0, 75.0), (2, 50.0, pytest.approx(200 / 3))]


def test_tokens_of_a_pass_by_formula_by_totals_and_in_the_stream(path: Path) -> None:
    (row,) = rows(path, "passes")
    assert (row["formula"], row["counter"], row["seen"]) == (2.25, 2.25, 2.5)
    assert row["rate_percent"] == 62.5


def test_pace_is_held_against_the_plain_engine_of_the_same_repeat(path: Path) -> None:
    """8 ms a token against 40 / 10 = 4: twice as fast, at a pass of 10 / 8 plain ones."""
    row = next(row for row in rows(path, "alone") if row["method"] == "eagle")
    assert (row["token_ms"], row["times"], row["pass_cost"]) == (4.0, 2.0, 1.25)
    assert row["tokens_per_pass"] == 2.5


def test_answers_are_compared_token_by_token(path: Path) -> None:
    (row,) = rows(path, "greedy")
    assert (row["answers"], row["same"], row["tokens"]) == (2, 1, 5)
    assert (row["first_token"], row["widest_gap"]) == (2, 0.25)


def test_an_answer_obeys_a_form_as_a_whole_or_not_at_all(path: Path) -> None:
    found = {row["form"]: (row["valid"], row["answers"]) for row in rows(path, "valid")}
    wanted = {
        form: (sum(ok for f, _, _, ok in FORMS if f == form), sum(f == form for f, *_ in FORMS))
        for form in ("json", "regex", "choice")
    }
    assert found == wanted == {"json": (1, 5), "regex": (1, 2), "choice": (1, 2)}


def test_a_label_is_judged_as_it_stands_and_by_the_first_one_named(path: Path) -> None:
    found = {row["extra"]: (row["strict"], row["lenient"]) for row in rows(path, "labelled")}
    assert found == {
        extra: (
            sum(strict for of, _, _, strict, _ in LABELS if of == extra),
            sum(lenient for of, *_, lenient in LABELS if of == extra),
        )
        for extra in ("free", "choice", "json")
    }


def test_two_equal_samples_are_as_far_apart_as_chance_and_two_others_are_not(
    tmp_path: Path,
) -> None:
    """60 and 40 against the same, and against 40 and 60: chi-squared is 0 and 2 x 400 / 100. The
    plain engine has twice as many answers, of which the second half is held against the others."""
    recording = create(tmp_path / "r.duckdb")
    sides = (("vllm", "sampled-plain", 60), ("draft", "sampled", 60), ("eagle", "sampled", 40))
    with recording.transaction():
        for cell_id, (variant, sweep, first) in enumerate(sides, start=1):
            recording.insert("cell", [cell(cell_id, variant=variant, sweep=sweep)])
            tokens = ["a"] * first + ["b"] * (100 - first)
            told = [
                request(cell_id, i, token_text=[token], text_id="one")
                for i, token in enumerate(tokens * (2 if variant == "vllm" else 1), start=1)
            ]
            recording.insert("request", told)
    recording.close()
    found = {row["variant"]: row for row in rows(recording.path, "sampled")}
    assert all((found[of]["df"], found[of]["chi2"]) == (1, 0) for of in ("draft", "again"))
    assert found["eagle"]["chi2"] == pytest.approx(8.0)
    assert found["eagle"]["z"] == pytest.approx((2 - (1 - 2 / 9)) / (2 / 9) ** 0.5)


def test_every_query_works_on_an_empty_recording(tmp_path: Path) -> None:
    recording = create(tmp_path / "empty.duckdb")
    recording.close()
    for name, query in queries.parse(FILE.read_text(encoding="utf-8"), "queries.sql").items():
        assert queries.run(recording.path, query, name).records() is not None
