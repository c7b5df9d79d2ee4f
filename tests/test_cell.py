"""What was planned for a request is found again by its number."""

from harness.cell import _Planned
from harness.worklist import Work
from harness.workload import Prompt


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
    }
    shared = Work("measured", prompts[1], 5, shared_prefix_tokens=64, salt="red")
    found = planned.of(planned.add(shared, added_tokens=0))
    assert (found["shared_prefix_tokens"], found["salt"], found["adapter"]) == (64, "red", None)
    found = planned.of(turn)
    assert (found["session"], found["turn"], found["asked_prompt_tokens"]) == (70_000, 2, 3 + 7)
