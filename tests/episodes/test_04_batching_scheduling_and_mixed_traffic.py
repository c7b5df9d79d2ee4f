"""Episode 04's committed recording: what its page promises is in it."""

from pathlib import Path

import pytest

from harness.experiment import load
from harness.recording.store import connect
from harness.render import model
from harness.schedule import cells
from tests.episodes import committed

EPISODE = committed.ROOT / "episodes" / "04-batching-scheduling-and-mixed-traffic"
FLAG = {"vllm": "--max-num-batched-tokens", "sglang": "--chunked-prefill-size"}


@pytest.fixture(scope="module")
def path() -> Path:
    return committed.finished("04")


def rows(path: Path, name: str) -> list[dict]:
    return committed.rows("04", path, name)


def test_everything_that_was_declared_was_recorded(path: Path) -> None:
    experiment = load(EPISODE / "experiment.toml")
    tier = experiment.tiers["cpu"]
    planned = [
        (cell.repeat, cell.variant, cell.level.sweep.name, cell.level.shared_tokens)
        for cell in cells(experiment, tier, tier.engines)
    ]
    with connect(path) as con:
        found = con.execute("SELECT repeat, variant, sweep, shared_tokens FROM cell").fetchall()
    assert sorted(map(str, found)) == sorted(map(str, planned))


def test_the_fields_of_the_log_add_up_to_what_the_client_was_told(path: Path) -> None:
    for row in rows(path, "counted"):
        assert row["log_prompt"] == row["told_prompt"], row
        assert row["log_decoded"] == row["told_decoded"] == row["counter_decoded"], row
        assert row["prompt_equal"] == row["decoded_equal"] == row["cells"], row


def test_no_step_is_larger_than_its_budget(path: Path) -> None:
    """And one that cuts a prompt fills it; SGLang's answers count where a step holds both."""
    tier = load(EPISODE / "experiment.toml").tiers["cpu"]
    with connect(path) as con:
        for name in tier.engines:
            variant = tier.variant(name)
            if FLAG[variant.engine] not in variant.flags:
                continue
            budget = int(variant.flags[variant.flags.index(FLAG[variant.engine]) + 1])
            ((most,),) = con.execute(
                "SELECT max(prefill_tokens + decode_tokens) FROM scheduler_step"
                " JOIN engine_run USING (run_id) WHERE variant = ? AND prefill_tokens > 0",
                [name],
            ).fetchall()
            assert most <= budget, name
            if name in ("vllm-tiny", "vllm-small", "sglang-small", "sglang-mixed"):
                assert most == budget, name


def test_answers_stand_still_where_a_step_holds_one_kind(path: Path) -> None:
    """SGLang as it is decodes nothing between the long prompt's first chunk and its last."""
    for row in rows(path, "stall"):
        if row["policy"] == "SGLang":
            assert row["stall_ms"] > 0.9 * row["long_ms"], row
        elif row["steps"] > 1:
            assert row["stall_ms"] < 0.7 * row["long_ms"], row


def test_the_predictions_drawn_are_those_of_the_small_model(path: Path) -> None:
    small = model.load(EPISODE / "model.py")["token_budget"]
    constants = {row["policy"]: row for row in rows(path, "model_fit")}
    for row in rows(path, "stall"):
        given = row | constants[row["policy"]]
        names = ("policy", "budget_tokens", "prompt_tokens", "running", "base_ms", "per_token_ms")
        said = small.function(**{name: given[name] for name in (*names, "cap_tokens")})
        assert said["steps"] == row["steps_due"]
        assert said["stall_ms"] == pytest.approx(row["stall_due_ms"])
        assert said["long_ms"] == pytest.approx(row["long_due_ms"])


def test_the_histogram_of_tokens_counts_a_cut_prompt_whole(path: Path) -> None:
    by_variant = {row["variant"]: row for row in rows(path, "iteration_counter")}
    tiny = by_variant["vllm-tiny"]
    assert tiny["log_most"] == tiny["budget_tokens"] < tiny["histogram_most"]


def test_a_policy_changes_who_goes_first(path: Path) -> None:
    by_queue = {(row["sweep"], row["shared_tokens"]): row for row in rows(path, "queue_order")}
    plain, urgent = by_queue["queue", None], by_queue["queue-priority", None]
    assert plain["overtaken"] < urgent["overtaken"]
    assert urgent["even_s"] < urgent["odd_s"]
    alike = by_queue["queue-shared", 0]
    assert (alike["overtaken"], alike["cached_tokens"]) == (0, 0)
