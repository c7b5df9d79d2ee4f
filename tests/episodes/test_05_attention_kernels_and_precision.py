"""Episode 05's committed recording: what ran is verified, and quality follows from the tokens."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median

import duckdb
import numpy as np
import pytest

from harness import schedule
from harness.experiment import load
from harness.recording.store import connect
from tests.episodes import committed

EPISODE = Path(__file__).parents[2] / "episodes" / "05-attention-kernels-and-precision"
KNOWN = {"flash", "math", "cpu_attn"}


@pytest.fixture(scope="module")
def path() -> Path:
    return committed.finished("05")


@pytest.fixture
def con(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(path) as opened:
        yield opened


def rows(path: Path, name: str) -> list[dict]:
    return committed.rows("05", path, name)


def test_every_cell_was_recorded_and_what_is_invalid_is_so_for_the_machine_alone(
    con: duckdb.DuckDBPyConnection,
) -> None:
    experiment = load(EPISODE / "experiment.toml")
    tier = experiment.tiers["cpu"]
    declared = [cell.position for cell in schedule.cells(experiment, tier, tier.engines)]
    found = con.execute("SELECT list(position ORDER BY position) FROM cell").fetchone()
    assert found == (declared,)
    reasons = {
        r.split(":")[0] for (r,) in con.execute("SELECT unnest(reasons) FROM cell").fetchall()
    }
    assert reasons <= {"cpu_steal"}


def test_every_job_ended_well_in_every_repeat(path: Path) -> None:
    tier = load(EPISODE / "experiment.toml").tiers["cpu"]
    wanted = {job.name: job.repeats or tier.repeats for job in tier.jobs}
    assert {row["name"]: row["runs"] for row in rows(path, "jobs")} == wanted
    assert not any(row["failed"] for row in rows(path, "jobs"))


def test_the_profiler_saw_the_kernel_that_was_asked_for_by_name(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """PyTorch's backends and vLLM's kernel run where they are named; nothing is unknown."""
    found = con.execute(
        "SELECT DISTINCT backend, ran FROM kernel_sample WHERE op = 'attention'"
    ).fetchall()
    assert {ran for _, ran in found} <= KNOWN
    expected = {"sdpa-flash": "flash", "sdpa-math": "math"}
    for backend, ran in found:
        if backend != "sdpa":
            assert ran == expected.get(backend, "cpu_attn"), backend


def test_an_engine_answers_with_another_backend_than_was_asked_for(path: Path) -> None:
    (row,) = [row for row in rows(path, "attempts") if row["name"] == "vllm-flash-attn"]
    assert row["outcome"] == "answered" and "Cannot use" in row["words"]
    (total,) = rows(path, "replaced")
    assert total["silently"] >= 1


def test_what_was_refused_has_the_engine_s_own_words(con: duckdb.DuckDBPyConnection) -> None:
    found = con.execute("SELECT name, outcome, len(words) FROM attempt").fetchall()
    assert len(found) == len(load(EPISODE / "experiment.toml").tiers["cpu"].attempts)
    assert all(words for _, outcome, words in found if outcome != "answered")


def test_quality_follows_from_the_values_of_every_token(
    con: duckdb.DuckDBPyConnection, path: Path
) -> None:
    for row in rows(path, "quality"):
        found = con.execute(
            "SELECT logprob, reference_logprob, kl_nats, top1 FROM token_score WHERE variant = ?",
            [row["variant"]],
        ).fetchall()
        logprob, reference, kl, top1 = (
            np.array(column, float) for column in zip(*found, strict=True)
        )
        assert row["tokens"] == len(found) > 1000
        assert row["perplexity"] == pytest.approx(math.exp(-logprob.mean()), rel=1e-9)
        assert row["reference_perplexity"] == pytest.approx(math.exp(-reference.mean()), rel=1e-9)
        assert row["kl_mean"] == pytest.approx(kl.mean(), rel=1e-9)
        assert row["kl_p99"] == pytest.approx(np.quantile(kl, 0.99), rel=1e-9)
        assert row["same_percent"] == pytest.approx(100 * top1.mean(), rel=1e-9)


def test_a_divergence_is_never_negative_and_the_reference_is_its_own(
    con: duckdb.DuckDBPyConnection,
) -> None:
    least, own = con.execute(
        "SELECT min(kl_nats), max(kl_nats) FILTER (variant = 'reference') FROM token_score"
    ).fetchall()[0]
    assert least >= 0 and own == 0


def test_greedy_answers_part_where_the_recorded_tokens_do(
    con: duckdb.DuckDBPyConnection, path: Path
) -> None:
    (facts,) = con.execute("SELECT facts FROM job WHERE script = 'scores.py'").fetchall()[0]
    greedy = json.loads(facts)["greedy"]
    for row in rows(path, "quality"):
        pairs = zip(greedy[row["variant"]], greedy["reference"], strict=True)
        places = [
            next((i for i, (a, b) in enumerate(zip(x, y, strict=True), 1) if a != b), None)
            for x, y in pairs
        ]
        assert row["texts"] == len(places)
        assert row["equal_texts"] == places.count(None)
        parted = [place for place in places if place]
        assert row["parts_at"] == (median(parted) if parted else None)


def test_the_pools_are_those_of_the_bytes_of_a_token(path: Path) -> None:
    found = rows(path, "pool")
    assert {row["token_bytes"] for row in found} == {46_080, 23_040, 11_520}
    for row in found:
        assert row["computed_tokens"] == row["pool_tokens"] == row["most_tokens"]


def test_a_share_of_the_roofline_is_recomputed_from_the_samples(
    con: duckdb.DuckDBPyConnection, path: Path
) -> None:
    """vLLM's decode over 8,192 tokens in 32 bits, from the raw rows of each repeat."""
    samples = con.execute(
        "SELECT job_id, op, backend, dtype, q_tokens, kv_tokens, size_bytes, took_ns, flop,"
        " moved_bytes FROM kernel_sample JOIN job USING (job_id) WHERE script = 'kernels.py'"
    ).fetchall()
    shares = []
    for job in {row[0] for row in samples}:
        own = [row[1:] for row in samples if row[0] == job]
        peak = max(r[7] / r[6] for r in own if r[0] == "matmul" and r[2] == "float32")
        copy = max(r[8] / r[6] for r in own if r[0] == "copy" and r[5] == 64 << 20)
        case = [r for r in own if r[1:5] == ("vllm", "float32", 1, 8192)]
        floor_ns = max(case[0][7] / peak, case[0][8] / copy)
        shares.append(100 * floor_ns / median(r[6] for r in case))
    (row,) = [
        row
        for row in rows(path, "attention")
        if (row["phase"], row["dtype"], row["backend"], row["kv_tokens"])
        == ("decode", "float32", "vllm", 8192)
    ]
    assert row["roof_percent"] == pytest.approx(fmean(shares), rel=1e-9)
    assert row["repeats"] == len(shares) == 5
