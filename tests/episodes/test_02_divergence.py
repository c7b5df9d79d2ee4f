"""Episode 02's queries on hand-made answers: which agree, where they part, by how little."""

from pathlib import Path
from typing import Any

import pytest

from harness.render import queries
from tests.episodes.test_02_equal_work_runtime_baseline import EPISODE
from tests.recording.conftest import cell, create, request

TOLD = {  # vLLM's answers by prompt: tokens, and how much likelier each was than the runner-up
    1: ([" The", " cat", " sat"], [3.0, 0.5, 2.0]),
    2: ([" One", " two", " three"], [1.0, 4.0, 0.25]),
    3: ([" a", " b"], [1.0, 1.0]),
    4: ([" same"], [1.0]),
    5: (["né", "e\u0301", "👩\u200d👩\u200d👧", " bow"], [1.0, 1.0, 1.0, 0.125]),
}
OWN = {1: TOLD[1], 2: ([" Two", " x", " y"], [1.0, 2.0, 0.125])}
# Variant, sweep, requests in flight, and answers by prompt, the text alone or as above.
ANSWERS: list[tuple[str, str, int, dict[int, Any]]] = [
    ("vllm", "alone", 1, TOLD),
    (
        "transformers",
        "alone",
        1,
        {
            1: " The car ran",  # parts at the eighth character, the last of the second token
            2: " One two",  # the beginning of vLLM's
            3: " a b c",  # goes on where vLLM's ends
            4: " same",
            5: "née\u0301👩\u200d👩\u200d👧 box",  # code points, not letters, are counted
        },
    ),
    ("sglang", "alone", 1, OWN),
    ("sglang", "batch", 2, {1: " The cat sat", 2: " Two x z"}),
    ("transformers-batching", "alone", 1, {1: " The cat sat", 2: " Two x y", 4: " same"}),
    ("transformers-batching", "batch", 2, {1: " The cat ran", 2: " Two x", 4: " same"}),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recording = create(tmp_path_factory.mktemp("made") / "r.duckdb")
    with recording.transaction():
        for cell_id, (variant, sweep, in_flight, answers) in enumerate(ANSWERS, start=1):
            keys = {"variant": variant, "sweep": sweep, "in_flight": in_flight}
            recording.insert("cell", [cell(cell_id, **keys)])
            rows = []
            for prompt, answer in answers.items():
                tokens, gaps = (None, None) if isinstance(answer, str) else answer
                told = {"token_text": tokens, "token_gap": gaps}
                text = answer if tokens is None else "".join(tokens)
                rows.append(request(cell_id, prompt, prompt_hash=prompt, output_text=text, **told))
            recording.insert("request", rows)
    recording.close()
    return recording.path


def rows(path: Path, name: str) -> list[dict[str, Any]]:
    known = queries.parse((EPISODE / "queries.sql").read_text(), "queries.sql")
    return queries.run(path, known[name], "queries.sql").records()


def test_answers_part_at_the_token_that_holds_the_first_other_character(path: Path) -> None:
    found = {
        row["prompt_hash"]: (row["token"], row["gap"])
        for row in rows(path, "divergence")
        if row["right_one"] == "transformers"
    }
    assert found == {1: (2, 0.5), 2: (3, 0.25), 3: (None, None), 5: (4, 0.125)}


def test_the_summary_counts_prompts_and_those_that_part(path: Path) -> None:
    found = {row["right_one"]: row for row in rows(path, "divergence_summary")}
    assert (found["transformers"]["prompts"], found["transformers"]["first_token"]) == (5, 2)
    assert found["transformers"]["widest_gap"] == 0.5
    sglang = found["sglang"]
    assert (sglang["prompts"], sglang["parted"], sglang["first_token"]) == (2, 1, 1)
    assert sglang["widest_gap"] == 1.0


def test_agreement_is_with_vllms_text(path: Path) -> None:
    found = {row["variant"]: (row["prompts"], row["same"]) for row in rows(path, "agreement")}
    assert found == {"transformers": (5, 1), "transformers-batching": (3, 2), "sglang": (2, 1)}


def test_company_is_beside_the_same_variant_alone(path: Path) -> None:
    found = {
        (row["variant"], row["in_flight"]): (row["prompts"], row["same"], row["same_percent"])
        for row in rows(path, "company")
    }
    assert found == {
        ("sglang", 2): (2, 1, 50),
        ("transformers-batching", 2): (3, 1, pytest.approx(100 / 3)),
    }


def test_in_company_vllms_account_is_taken_where_its_text_is_the_same_so_far(path: Path) -> None:
    found = {
        (row["variant"], row["prompt_hash"]): (row["token"], row["gap"])
        for row in rows(path, "company_divergence")
    }
    assert found == {
        ("sglang", 2): (3, 0.125),  # its own: vLLM says something else from the first token on
        ("transformers-batching", 1): (3, 2.0),  # vLLM's
        ("transformers-batching", 2): (None, None),  # neither
    }
    short = {row["variant"]: row for row in rows(path, "company_divergence_summary")}
    keys = ("parted", "told", "median_token", "median_gap", "within_step")
    assert [short["sglang"][key] for key in keys] == [1, 1, 3, 0.125, 1]
    assert [short["transformers-batching"][key] for key in keys] == [2, 1, 3, 2.0, 0]
