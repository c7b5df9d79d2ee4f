"""Episode 03's committed recording: what the cache served is what was predicted before the run."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import duckdb
import pytest

from harness import prefix_cache, schedule
from harness.experiment import load
from harness.prefix_cache import BlockCache, RadixCache
from harness.recording.store import connect
from harness.worklist import Work, Worklist
from tests.episodes import committed

EPISODE = Path(__file__).parents[2] / "episodes" / "03-prefix-reuse"
RECORDED = """
SELECT c.run_id, c.engine, e.kv_pool_tokens, b.block_tokens, c.cell_id, c.position, c.reset_cache,
    c.in_flight, c.sweep, c.added_tokens, list(r.prompt_hash ORDER BY r.request_id) AS hashes,
    list(r.cached_tokens ORDER BY r.request_id) AS cached
FROM cell c JOIN engine_run e USING (run_id) JOIN cache_block b USING (run_id)
JOIN request r ON r.cell_id = c.cell_id GROUP BY ALL ORDER BY c.cell_id
"""


@pytest.fixture(scope="module")
def path() -> Path:
    return committed.finished("03")


@pytest.fixture
def con(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(path) as opened:
        yield opened


def rows(path: Path, name: str) -> list[dict]:
    return committed.rows("03", path, name)


def test_a_replay_of_every_process_gives_the_cached_tokens_of_every_request(
    con: duckdb.DuckDBPyConnection,
) -> None:
    """Each process's cells in their order, prompts from the declaration, into a model of its cache:
    equal for every request that came alone, evictions and cells without a reset included."""
    experiment = load(EPISODE / "experiment.toml")
    tier = experiment.tiers["cpu"]
    planned = {c.position: c for c in schedule.cells(experiment, tier, tier.engines)}
    caches: dict[int, BlockCache | RadixCache] = {}
    compared = set()
    found = con.execute(RECORDED)
    names = [column[0] for column in found.description or []]
    for row in (dict(zip(names, values, strict=True)) for values in found.fetchall()):
        cell = planned[row["position"]]
        made = Worklist(cell, tier, experiment.seeds, None, row["added_tokens"], None, EPISODE)
        works = list(islice(made, len(row["hashes"])))
        assert [work.prompt.hash for work in works] == row["hashes"]
        if row["reset_cache"] or row["run_id"] not in caches:
            caches[row["run_id"]] = prefix_cache.empty(row["kv_pool_tokens"], row["block_tokens"])
        served = [_serve(caches[row["run_id"]], work) for work in works]
        if row["in_flight"] == 1:
            assert served == row["cached"], f"cell {row['cell_id']} of {row['engine']}: {cell}"
            compared.add((row["engine"], row["sweep"]))
    asked = con.execute("SELECT DISTINCT engine, sweep FROM cell WHERE sweep <> 'together'")
    assert compared == set(asked.fetchall())


def _serve(cache: BlockCache | RadixCache, work: Work) -> int:
    prompt = work.prompt.text.split()
    return cache.serve(prompt, (work.salt, work.adapter), work.output_tokens)


def test_the_formula_gives_the_cached_tokens_wherever_it_may_be_used(path: Path) -> None:
    """One at a time, after a reset, into a pool that holds the cell: every request."""
    (total,) = rows(path, "agreement_total")
    assert total["plain"] == total["plain_equal"] > 500


def test_the_engines_counters_say_the_same_as_their_answers(path: Path) -> None:
    found = rows(path, "counters")
    assert found and all(row["cells_equal"] == row["cells"] for row in found)
    assert all(row["usage_tokens"] == row["counter_tokens"] for row in found)


def test_a_reset_empties_the_cache_and_without_one_it_is_not_empty(path: Path) -> None:
    for row in rows(path, "reset_proof"):
        if row["reset_cache"]:
            assert row["none_found"] == row["cells"] > 50
        else:
            assert row["found_most"] > 0


def test_equal_prompts_in_one_step_share_in_vllm_and_not_in_sglang(path: Path) -> None:
    steps = rows(path, "first_step")
    assert any(step["prefill_requests"] > 1 for step in steps)
    for step in steps:
        assert step["cached_tokens"] == 0
        assert step["prefill_tokens"] == 512 * step["prefill_requests"]
    at_once = [row for row in rows(path, "agreement") if row["most_in_flight"] > 1]
    fewer = {(row["engine"], row["sweep"]): row["fewer"] for row in at_once}
    assert fewer["vllm", "together"] == fewer["vllm", "knee-repeated"] == 0
    assert fewer["sglang", "together"] > 0 and fewer["sglang", "knee-repeated"] > 0


def test_every_cell_was_recorded_and_what_is_invalid_is_so_for_the_machine_alone(
    con: duckdb.DuckDBPyConnection,
) -> None:
    experiment = load(EPISODE / "experiment.toml")
    tier = experiment.tiers["cpu"]
    declared = [c.position for c in schedule.cells(experiment, tier, tier.engines)]
    found = con.execute("SELECT list(position ORDER BY position) FROM cell").fetchone()
    assert found == (declared,)
    reasons = [
        reason.split(":")[0]
        for (reason,) in con.execute("SELECT unnest(reasons) FROM cell").fetchall()
    ]
    assert set(reasons) <= {"cpu_steal"}
    assert len(reasons) < 0.01 * len(declared)


def test_a_salt_and_an_adapter_are_each_cold_once(path: Path) -> None:
    for row in rows(path, "keys"):
        for engine in ("vllm", "sglang"):
            if row[f"{engine}_cached"] is not None:
                assert (row[f"{engine}_cached"] == "0") == (row["nth"] <= 3)
