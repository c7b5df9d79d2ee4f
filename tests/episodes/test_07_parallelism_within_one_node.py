"""Episode 07's committed recording: pools and messages are what the shapes say, and one cache reads
a document once."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from harness import schedule
from harness.experiment import load
from harness.recording.store import connect
from tests.episodes import committed

EPISODE = Path(__file__).parents[2] / "episodes" / "07-parallelism-within-one-node"


@pytest.fixture(scope="module")
def path() -> Path:
    return committed.finished("07")


@pytest.fixture
def con(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(path) as opened:
        yield opened


def rows(path: Path, name: str) -> list[dict]:
    return committed.rows("07", path, name)


def test_every_cell_job_and_attempt_was_recorded(con: duckdb.DuckDBPyConnection) -> None:
    experiment = load(EPISODE / "experiment.toml")
    tier = experiment.tiers["cpu"]
    declared = [c.position for c in schedule.cells(experiment, tier, tier.engines)]
    assert con.execute("SELECT list(position ORDER BY position) FROM cell").fetchone() == (
        declared,
    )
    runs = con.execute("SELECT repeat, fault FROM job ORDER BY repeat").fetchall()
    assert runs == [(repeat, None) for repeat in range(1, tier.repeats + 1)]
    asked = con.execute("SELECT name FROM attempt ORDER BY name").fetchall()
    assert asked == sorted((attempt.name,) for attempt in tier.attempts)


def test_what_is_invalid_is_so_for_the_machine_alone(con: duckdb.DuckDBPyConnection) -> None:
    found = con.execute("SELECT unnest(reasons) FROM cell").fetchall()
    assert {reason.split(":")[0] for (reason,) in found} <= {"cpu_steal"}
    assert len(found) <= 3


def test_the_pool_of_every_layout_is_what_its_fullest_process_keeps(path: Path) -> None:
    found = {row["variant"]: row for row in rows(path, "layouts")}
    assert len(found) == 5
    for row in found.values():
        assert row["pool_tokens"] == row["predicted_tokens"]
    assert found["vllm-tp"]["copy_tokens"] == found["vllm-dp"]["pool_tokens"]
    assert found["vllm-dp"]["copies"] == 2
    assert found["vllm-dp"]["copy_tokens"] == found["vllm"]["pool_tokens"]


def test_the_messages_of_a_step_follow_from_the_shape(path: Path) -> None:
    """Twelve layers, 512 hidden values of 4 bytes, half of 49,152 logits."""
    found = {row["batch"]: row for row in rows(path, "talk")}
    assert {1, 8} <= set(found)
    for batch, row in found.items():
        assert row["all_reduces"] == 25
        assert row["reduce_kib"] == 2 * batch
        assert row["step_kib"] == batch * (25 * 2 + 96)


def test_one_cache_reads_each_document_once_and_two_read_some_twice(path: Path) -> None:
    found = {row["variant"]: row for row in rows(path, "caches")}
    one, two = found["vllm-threads"], found["vllm-dp"]
    assert one["cold_least"] == one["cold_most"] == one["documents"] == 4
    assert 4 < two["cold"] <= two["cold_most"] <= 8
    assert one["cached_percent"] == one["predicted_percent"] > two["cached_percent"]


def test_both_copies_worked(path: Path) -> None:
    for row in rows(path, "router"):
        if row["in_flight"] > 1:
            assert row["first_copy"] > 0 and row["second_copy"] > 0


def test_every_layout_gives_the_answers_of_the_plain_engine(path: Path) -> None:
    found = rows(path, "answers")
    assert [row["variant"] for row in found] == ["vllm-threads", "vllm-tp", "vllm-pp", "vllm-dp"]
    assert all(row["same"] == row["prompts"] >= 50 for row in found)


def test_the_bare_talk_went_through_vllm_s_own_operation(con: duckdb.DuckDBPyConnection) -> None:
    assert con.execute("SELECT DISTINCT facts->>'shm' FROM job").fetchall() == [("vllm",)]


def test_a_refusal_has_the_engine_s_own_words(path: Path) -> None:
    found = {row["name"]: row for row in rows(path, "attempts")}
    for name, words in (
        ("pp-eager", "intermediate_tensors is not None"),
        ("tp-heads", "attention heads (9) must be divisible by tensor parallel size (2)"),
        ("moe-ep", "exit code: -11"),  # segmentation fault
    ):
        assert found[name]["outcome"] in ("died", "not_started")
        assert words in found[name]["said"]
    assert "not ready" not in "".join(row["said"] or "" for row in found.values())
    experts = {row["name"]: row["against_one"] for row in rows(path, "experts")}
    assert experts == {"moe-one": "the same", "moe-tp": "the same", "moe-ep": "no answer"}
