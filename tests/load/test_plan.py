from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.load.plan import LoadPlan, PlannedRequest, read_settings, read_turns, save_plan, shard

PLAN = LoadPlan("http://127.0.0.1:1/v1/completions", 4, 5, 1.5, 9.0, (), "/tmp/spool")
REQUESTS = [
    PlannedRequest(1, "warmup", '{"prompt": "a\\nb"}'),
    PlannedRequest(2, "measured", "{}", due_ns=7, session=1),
    PlannedRequest(3, "measured", "{}", session=1, think_ns=50),
    PlannedRequest(4, "measured", "{}", due_ns=9, session=2),
    PlannedRequest(5, "measured", "{}"),
    PlannedRequest(6, "measured", "{}"),
]


def numbers(path: Path) -> list[list[int]]:
    return [[turn.request_id for turn in turns] for turns in read_turns(path)]


def test_what_was_planned_is_read_back_a_session_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "plan.jsonl"
    save_plan(path, PLAN, iter(REQUESTS))
    assert read_settings(path) == PLAN
    assert [turn for turns in read_turns(path) for turn in turns] == REQUESTS
    assert numbers(path) == [[1], [2, 3], [4], [5], [6]]


def test_a_plan_is_read_no_further_than_it_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "plan.jsonl"
    save_plan(path, PLAN, REQUESTS)
    with open(path, "a") as file:
        file.write("torn")
    turns = read_turns(path)
    assert [len(next(turns)) for _ in range(4)] == [1, 2, 1, 1]
    with pytest.raises(HarnessError, match=r"plan.jsonl:8: not a line of a plan: .* torn"):
        next(turns)


@pytest.mark.parametrize("line", ["[]\n", "{}\n", '{"request_id": 1, "phase": "warmup"\n', "\n"])
def test_a_line_that_is_no_request_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "plan.jsonl"
    save_plan(path, PLAN, REQUESTS[:1])
    path.write_text(path.read_text() + line)
    with pytest.raises(HarnessError, match=r"plan.jsonl:3: not a"):
        list(read_turns(path))


def test_shards_keep_sessions_whole_and_lose_nothing(tmp_path: Path) -> None:
    path, shares = tmp_path / "plan.jsonl", []
    save_plan(path, PLAN, REQUESTS)
    for index in range(2):
        part = tmp_path / f"part.{index}"
        part.write_text("".join(shard(path, index, 2)))
        assert read_settings(part).min_requests == 3  # half of 5, rounded up
        shares.append(numbers(part))
    assert shares == [[[1], [4], [6]], [[2, 3], [5]]]


def test_each_process_has_a_spool_of_its_own() -> None:
    assert PLAN.spools(1) == (Path("/tmp/spool"),)
    assert PLAN.spools(2) == (Path("/tmp/spool.0"), Path("/tmp/spool.1"))
