"""What was planned for a request is found again by its number."""

import json
from pathlib import Path
from typing import Any

from harness.cell import Target, _Planned, _requests
from harness.engines import get as get_engine
from harness.schedule import cells
from harness.worklist import Work, Worklist
from harness.workload import Prompt
from tests.test_worklist import SHARING, declared


def test_a_request_finds_its_prompt_lengths_and_turn() -> None:
    planned = _Planned()
    prompts = [Prompt("", None, n_tokens=n, hash=2**64 - n) for n in range(1, 4)]
    alone = planned.add(Work("warmup", prompts[0], 5), added_tokens=7)
    turn = planned.add(Work("measured", prompts[2], 6, session=70_000, turn=2), added_tokens=7)
    assert (alone, turn) == (1, 2)
    assert planned.of(alone) == {
        "session": None,
        "turn": None,
        "prompt_hash": 2**64 - 1,
        "asked_prompt_tokens": 1 + 7,
        "asked_output_tokens": 5,
        "shared_prefix_tokens": None,
        "salt": None,
        "adapter": None,
        "text_id": None,
        "extra": None,
        "expected": None,
    }
    shared = Work("measured", prompts[1], 5, shared_prefix_tokens=64, salt="red")
    found = planned.of(planned.add(shared, added_tokens=0))
    assert (found["shared_prefix_tokens"], found["salt"], found["adapter"]) == (64, "red", None)
    unknown = planned.of(planned.add(Work("measured", prompts[1], 5, adapter="a"), added_tokens=7))
    keys = ("shared_prefix_tokens", "salt", "adapter")
    assert [unknown[key] for key in keys] == [None, None, "a"]
    found = planned.of(turn)
    assert (found["session"], found["turn"], found["asked_prompt_tokens"]) == (70_000, 2, 3 + 7)


def test_what_the_sweep_declares_for_a_request_is_in_its_body(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"salts": ["", "red"], "adapters": ["a"], "priorities": [1, 0, 0]}
    keys |= {"shared_tokens": [8], "length_by": "min_tokens"}
    experiment = declared(tmp_path, **SHARING, **keys)
    tier = experiment.tiers["cpu"]
    cell = cells(experiment, tier, ("a",))[0]
    worklist = Worklist(cell, tier, experiment.seeds, None, 0, None, tmp_path)
    target = Target(get_engine("emulator"), "", "m", lambda: True, list, str)
    made = _requests(worklist, target, _Planned())
    bodies = [json.loads(request.body) for request in made]  # one of warm-up and four measured
    assert [body.get("priority") for body in bodies] == [None, 1, 0, 0, 1]
    assert [body.get("cache_salt") for body in bodies] == [None, None, "red", None, "red"]
    assert [body["model"] for body in bodies] == ["m", *["a"] * 4]
    assert all(body["min_tokens"] == 4 and "ignore_eos" not in body for body in bodies)


def test_a_text_brings_its_part_of_the_body_and_a_seed_of_its_own(tmp_path: Path) -> None:
    line = {"id": "t", "prompt": "a b", "prompt_tokens": 2, "output_tokens": 3, "extra": {"top": 1}}
    (tmp_path / "t.jsonl").write_text(json.dumps(line))
    keys = {"texts": "t.jsonl", "prompt_tokens": 8, "length_by": "eos", "temperature": 0.5}
    experiment = declared(tmp_path, endpoint="chat", **keys)
    tier = experiment.tiers["cpu"]
    cell = cells(experiment, tier, ("a",))[0]
    worklist = Worklist(cell, tier, experiment.seeds, None, 0, None, tmp_path)
    target = Target(get_engine("emulator"), "", "m", lambda: True, list, str)
    planned = _Planned()
    bodies = [json.loads(request.body) for request in _requests(worklist, target, planned)]
    assert [body["seed"] for body in bodies] == [3 + 1, 3 + 2, 3 + 3]
    one = bodies[1]
    assert one["messages"] == [{"role": "user", "content": "a b"}]
    assert (one["max_tokens"], one["temperature"], one["top"]) == (3, 0.5, 1)
    assert "ignore_eos" not in one and "min_tokens" not in one
    row = planned.of(2)
    assert (row["text_id"], row["extra"], row["expected"]) == ("t", {"top": 1}, None)
    assert (row["asked_prompt_tokens"], row["asked_output_tokens"]) == (2, 3)
