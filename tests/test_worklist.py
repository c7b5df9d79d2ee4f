"""The requests of a cell: as many as asked for, due when asked for, of the lengths asked for."""

import json
import random
from dataclasses import replace
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import pytest

from harness import arrivals
from harness.errors import HarnessError
from harness.experiment import Experiment, load
from harness.schedule import cells, levels
from harness.worklist import Work, Worklist
from harness.workload import common_prefix
from tests.test_experiment import DECLARATION, write


def declared(folder: Path, **sweep: Any) -> Experiment:
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in sweep.items())
    text = DECLARATION
    for key in (*sweep, *(["in_flight"] if "load" in sweep else [])):
        text = "\n".join(line for line in text.split("\n") if not line.startswith(f"{key} ="))
    return load(write(folder, text + lines))


def works(
    folder: Path, repeat: int = 1, seeds: dict[str, int] | None = None, **sweep: Any
) -> list[Work]:
    """seeds: those that differ from the declared ones, 1 for prompts and 2 for arrivals."""
    experiment = declared(folder, **sweep)
    tier = experiment.tiers["cpu"]
    cell = replace(cells(experiment, tier, ("a",))[0], repeat=repeat)
    changed = replace(experiment.seeds, **(seeds or {}))
    return list(Worklist(cell, tier, changed, cell.level.rate_per_s, 0, None, folder))


def due_of(made: list[Work]) -> list[int]:
    return [work.due_ns for work in made if work.due_ns is not None]


def test_a_closed_loop_has_no_due_times(tmp_path: Path) -> None:
    made = works(tmp_path, prompt_tokens=[8], min_duration_s=1.0, max_requests=5)
    assert [work.phase for work in made] == ["warmup"] + ["measured"] * 5
    assert {work.due_ns for work in made} == {None}
    assert {work.prompt.n_tokens for work in made} == {8}


def test_a_closed_loop_does_its_rounds(tmp_path: Path) -> None:
    assert len(works(tmp_path, in_flight=3, rounds=4, prompt_tokens=[8])) == 1 + 12
    assert len(works(tmp_path, in_flight=1, rounds=1, prompt_tokens=[8])) == 1 + 2


def test_an_open_loop_ends_where_both_minimums_are_met(tmp_path: Path) -> None:
    open_loop: dict[str, Any] = {
        "load": "constant",
        "rate_per_s": [4],
        "connections": 9,
        "prompt_tokens": [8],
    }
    by_count = works(tmp_path, **open_loop, min_requests=6)
    assert [work.due_ns for work in by_count] == [None, *(250_000_000 * i for i in range(1, 7))]
    by_time = works(tmp_path, **open_loop, min_requests=1, min_duration_s=2)
    assert by_time[-1].due_ns == 2_000_000_000


def test_arrivals_differ_by_repeat_and_not_by_anything_else(tmp_path: Path) -> None:
    poisson: dict[str, Any] = {
        "load": "poisson",
        "rate_per_s": [4],
        "connections": 9,
        "min_requests": 20,
    }
    first, again, other = (works(tmp_path, repeat=r, **poisson) for r in (1, 1, 2))
    assert first == again
    assert [w.due_ns for w in first] != [w.due_ns for w in other]


OPEN: dict[str, Any] = {"connections": 9, "prompt_tokens": [8], "min_requests": 4}
SEED = "2:1:0"  # arrivals, repeat, level


@pytest.mark.parametrize(
    ("load", "burstiness", "first_ns"),
    [
        ("poisson", 1.0, [82_118_395, 177_235_379, 247_594_756, 295_780_178]),
        ("gamma", 0.25, [8_736_521, 13_884_614, 88_672_425, 101_312_049]),
    ],
)
def test_burstiness_reaches_the_arrivals(
    tmp_path: Path, load: str, burstiness: float, first_ns: list[int]
) -> None:
    made = works(tmp_path, load=load, rate_per_s=[4], burstiness=burstiness, **OPEN)
    assert due_of(made) == first_ns
    assert first_ns == list(islice(arrivals.gamma(4.0, burstiness, SEED), 4))


@pytest.mark.parametrize("ramp", [False, True])
def test_stages_and_a_ramp_end_with_their_last_stage(tmp_path: Path, ramp: bool) -> None:
    """2/s for 2 s, then 10/s for 1 s. A unit-rate process runs through the inverse of the rate's
    integral: 2 t, or 2 t + 2 t^2 where it climbs by 4/s each second, then 10 t."""
    made = works(tmp_path, load="stages", stages=[[2, 2], [10, 1]], ramp=ramp, **OPEN)
    rng, first_area = random.Random(SEED), 12 if ramp else 4
    unit = list(accumulate(rng.expovariate(1.0) for _ in range(60)))
    first = [(((1 + 2 * u) ** 0.5 - 1) / 2 if ramp else u / 2) for u in unit if u <= first_area]
    then = [2 + (u - first_area) / 10 for u in unit if first_area < u <= first_area + 10]
    assert due_of(made) == pytest.approx([at_s * 1e9 for at_s in first + then], abs=1)
    assert (len(first), len(then)) == ((13, 7) if ramp else (6, 11))
    assert due_of(made)[0] == (143_612_298 if ramp else 164_236_790)


def test_each_seed_moves_its_own_part_alone(tmp_path: Path) -> None:
    poisson = OPEN | {"load": "poisson", "rate_per_s": [4]}
    plain, later, other, sampled = (
        works(tmp_path, seeds=seeds, **poisson)
        for seeds in ({}, {"arrivals": 9}, {"prompts": 9}, {"sampling": 9})
    )
    assert sampled == plain
    assert [work.prompt for work in later] == [work.prompt for work in plain]
    assert not set(due_of(later)) & set(due_of(plain))
    assert due_of(other) == due_of(plain)
    assert not {work.prompt.text for work in other} & {work.prompt.text for work in plain}


def test_a_session_grows_by_its_answer_and_the_next_question(tmp_path: Path) -> None:
    made = works(
        tmp_path, turns=3, think_s=2, turn_tokens=5, min_requests=4, prompt_tokens=[8],
        warmup_requests=0,
    )  # fmt: skip
    assert [(w.session, w.turn) for w in made] == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert [w.prompt.n_tokens for w in made[:3]] == [8, 17, 26]  # 4 answered and 5 asked each time
    assert [w.think_ns for w in made[:3]] == [0, 2_000_000_000, 2_000_000_000]
    for before, after in ((0, 1), (1, 2), (3, 4)):
        assert made[after].prompt.text.startswith(made[before].prompt.text)
    assert not made[3].prompt.text.startswith(made[0].prompt.text[:8])


def test_equal_blocks_of_a_trace_are_equal_words(tmp_path: Path) -> None:
    rows = [(0, 40, [1, 2]), (5, 48, [1, 2, 3]), (9, 20, [7]), (9, 40, [])]
    lines = [
        json.dumps({"timestamp": t, "input_length": n, "output_length": 4, "hash_ids": ids})
        for t, n, ids in rows
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    trace: dict[str, Any] = {
        "load": "trace",
        "trace": "t.jsonl",
        "trace_block_tokens": 16,
        "connections": 4,
    }
    made = works(tmp_path, **trace, prompt_tokens=[8])[1:]
    assert [w.prompt.n_tokens for w in made] == [40, 48, 20, 40]
    assert [w.due_ns for w in made] == [0, 5_000_000, 9_000_000, 9_000_000]
    one, two = made[0].prompt.text.split(), made[1].prompt.text.split()
    assert one[:32] == two[:32]  # two whole blocks; what follows is of each alone
    assert one[32:] != two[32:40]
    assert made[2].prompt.text.split()[:16] != one[:16]


def test_a_trace_that_does_not_fit_names_its_request(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"timestamp": 0, "input_length": 500, "output_length": 9}')
    trace: dict[str, Any] = {"load": "trace", "trace": "t.jsonl", "connections": 4}
    with pytest.raises(HarnessError, match=r"request 1: 500 \+ 9 tokens.*max_model_tokens = 128"):
        works(tmp_path, **trace)


def test_levels_may_share_their_prompts(tmp_path: Path) -> None:
    experiment = declared(tmp_path, in_flight=[1, 2], same_prompts=True, prompt_tokens=[8])
    tier = experiment.tiers["cpu"]
    assert [(level.in_flight, level.number) for level in levels(tier)] == [(1, 0), (2, 0)]
    made = [
        list(Worklist(cell, tier, experiment.seeds, None, 0, None, tmp_path))
        for cell in cells(experiment, tier, ("a",))
    ]
    assert all(each == made[0] for each in made)


def test_sweeps_may_share_their_prompts_and_stand_in_the_first_repeats_alone(
    tmp_path: Path,
) -> None:
    closed = """
[[tier.cpu.sweep]]
name = "NAME"
endpoint = "completions"
prompt_tokens = [8]
output_tokens = 4
in_flight = [2]
warmup_requests = 1
min_requests = 2
same_prompts = true
repeats = 1
"""
    text = DECLARATION + closed.replace("NAME", "alone") + closed.replace("NAME", "batch")
    experiment = load(write(tmp_path, text))
    tier = experiment.tiers["cpu"]
    found = cells(experiment, tier, ("a",))
    shared = [cell for cell in found if cell.level.sweep.same_prompts]
    assert [cell.repeat for cell in shared] == [1, 1]
    assert max(cell.repeat for cell in found) == tier.repeats > 1
    assert len({cell.level.number for cell in shared}) == 1
    others = {cell.level.number for cell in found if cell not in shared}
    assert not others & {cell.level.number for cell in shared}


def test_what_needs_the_capacity_comes_last_in_the_first_repeat(tmp_path: Path) -> None:
    text = (
        DECLARATION
        + """
[[tier.cpu.sweep]]
name = "open"
endpoint = "completions"
prompt_tokens = [8]
output_tokens = 4
load = "poisson"
capacity_frac = [0.5, 0.9]
capacity_of = "length"
connections = 8
warmup_requests = 1
min_requests = 2
engines = ["a"]
"""
    )
    experiment = load(write(tmp_path, text))
    planned = cells(experiment, experiment.tiers["cpu"], ("a", "b"))
    first = [
        cell.level.capacity_frac for cell in planned if (cell.variant, cell.repeat) == ("a", 1)
    ]
    assert first[:2] == [None, None] and set(first[2:]) == {0.5, 0.9}
    assert {cell.level.sweep.name for cell in planned if cell.variant == "b"} == {"length"}


def measured(made: list[Work]) -> list[Work]:
    return [work for work in made if work.phase == "measured"]


SHARING: dict[str, Any] = {"prompt_tokens": [8], "min_requests": 4, "cold": False}


def test_prompts_share_what_is_declared_and_no_more(tmp_path: Path) -> None:
    """(shared tokens, where) -> longest prefix in common with an earlier prompt of the cell."""
    expected = {(0, "start"): 0, (5, "start"): 5, (8, "start"): 8, (99, "start"): 8, (7, "end"): 0}
    for (tokens, at), longest in expected.items():
        made = works(tmp_path, **SHARING, shared_tokens=[tokens], shared_at=at)
        assert {work.prompt.n_tokens for work in made} == {8}
        prefixes = [work.shared_prefix_tokens for work in measured(made)]
        assert prefixes == [0, longest, longest, longest]
        assert [work.shared_prefix_tokens for work in made if work.phase == "warmup"] == [None]
    ends = [work.prompt.text.split()[1:] for work in measured(made)]  # one token of their own
    assert all(end == ends[0] for end in ends)


def test_shared_tokens_above_the_prompt_are_its_whole_whatever_the_server_adds(
    tmp_path: Path,
) -> None:
    experiment = declared(tmp_path, **SHARING, shared_tokens=[4, 8, 99])
    tier = experiment.tiers["cpu"]
    assert [level.shared_tokens for level in levels(tier)] == [4, 8]  # no level twice
    for cell in cells(experiment, tier, ("a",)):
        made = list(Worklist(cell, tier, experiment.seeds, None, 3, None, tmp_path))
        assert {work.prompt.n_tokens for work in made} == {8 - 3}
        texts = [tuple(work.prompt.text.split()) for work in measured(made)]
        longest = min(cell.level.shared_tokens or 0, 8 - 3)
        assert [common_prefix(texts[0], text) for text in texts[1:]] == [longest] * 3
        # The added ones are shared as well, and what they are is not known.
        assert {work.shared_prefix_tokens for work in made} == {None}


def test_documents_salts_and_adapters_are_taken_in_turn(tmp_path: Path) -> None:
    two = measured(works(tmp_path, **SHARING, shared_tokens=[8], documents=2))
    assert [work.shared_prefix_tokens for work in two] == [0, 0, 8, 8]
    assert two[0].prompt == two[2].prompt != two[1].prompt
    salted = measured(works(tmp_path, **SHARING, shared_tokens=[8], salts=["", "red"]))
    assert [work.salt for work in salted] == ["", "red", "", "red"]
    assert [work.shared_prefix_tokens for work in salted] == [0, 0, 8, 8]
    adapted = measured(works(tmp_path, **SHARING, shared_tokens=[8], adapters=["", "a", "a"]))
    assert [work.adapter for work in adapted] == ["", "a", "a", ""]
    assert [work.shared_prefix_tokens for work in adapted] == [0, 0, 8, 8]


def test_a_document_is_the_same_text_in_every_repeat_and_cell(tmp_path: Path) -> None:
    first = measured(works(tmp_path, **SHARING, shared_tokens=[6]))
    later = measured(works(tmp_path, repeat=2, **SHARING, shared_tokens=[4]))
    assert first[0].prompt.text.split()[:4] == later[0].prompt.text.split()[:4]
    assert first[0].prompt.text.split()[6:] != later[0].prompt.text.split()[6:]


def test_a_mix_has_its_kinds_in_proportion(tmp_path: Path) -> None:
    kinds: dict[str, Any] = {
        "mix": [[4, 3, 3], [12, 2, 1]],
        "prompt_tokens": [8],
        "min_requests": 8,
    }
    made = works(tmp_path, **kinds)
    assert [work.prompt.n_tokens for work in made if work.phase == "warmup"] == [8]
    lengths = [(work.prompt.n_tokens, work.output_tokens) for work in measured(made)]
    for block in (lengths[:4], lengths[4:]):  # in every block of 3 + 1
        assert sorted(block) == [(4, 3)] * 3 + [(12, 2)]
    assert len({work.prompt.text.split()[0] for work in made}) == 9  # every one is new
    assert made == works(tmp_path, **kinds)
    same = kinds | {"same_prompts": True}
    assert works(tmp_path, **same) == works(tmp_path, repeat=2, **same)
