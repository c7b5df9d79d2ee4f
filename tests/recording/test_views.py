"""Every metric view against values computed by hand."""

import pytest

from harness.recording.store import Recording
from tests.recording.conftest import MS, cell, request

FAILED: dict[str, object] = {
    "error": "stream cut",
    "first_token_ns": None,
    "first_answer_ns": None,
    "last_token_ns": None,
    "output_tokens": None,
    "chunk_gap_us": [],
    "chunk_tokens": [],
    "chunk_shared": [],
}
ENGINES = ("vllm", "sglang", "transformers")


def fill(recording: Recording, cells: list[dict], requests: list[dict]) -> None:
    with recording.transaction():
        recording.insert("cell", cells)
        recording.insert("request", requests)


def run(run_id: int, engine: str, *argv: str) -> dict:
    made = {"session_id": 1, "model_id": "m", "env": {}, "started_ns": 0, "argv": list(argv)}
    return made | {"run_id": run_id, "engine": engine, "variant": engine}


def test_request_metrics(recording: Recording) -> None:
    fill(
        recording,
        [cell(1)],
        [request(1, 1, phase="warmup"), request(1, 2), request(1, 3, **FAILED)],
    )
    con = recording.con
    columns = "from_sent_ms, from_scheduled_ms, answer_from_sent_ms, answer_from_scheduled_ms"
    assert con.execute(f"SELECT {columns} FROM ttft").fetchall() == [(20, 30, 30, 40)]
    assert con.execute("SELECT from_sent_ms, from_scheduled_ms FROM e2e").fetchall() == [(60, 70)]
    # 40 ms between first and last token; 4 tokens, 1 of them in the first chunk.
    assert con.execute("SELECT tpot_ms FROM tpot").fetchall() == [(pytest.approx(40 / 3),)]


def test_chunk_gaps_and_token_gaps_differ_when_a_chunk_holds_two_tokens(
    recording: Recording,
) -> None:
    fill(recording, [cell(1)], [request(1, 1, chunk_shared=[False, True, False])])
    con = recording.con
    assert con.execute(
        "SELECT chunk_index, gap_ms, tokens, uncertain FROM inter_chunk"
    ).fetchall() == [
        (2, 10, 1, True),
        (3, 30, 2, True),
    ]
    assert con.execute("SELECT token_index, itl_ms FROM itl ORDER BY ALL").fetchall() == [
        (2, 10),
        (3, 15),
        (4, 15),
    ]


def test_unknown_tokens_per_chunk_give_no_itl_and_a_single_chunk_no_tpot(
    recording: Recording,
) -> None:
    one = {"chunk_gap_us": [], "chunk_tokens": [4], "chunk_shared": [False]}
    fill(
        recording,
        [cell(1)],
        [request(1, 1, chunk_tokens=[]), request(1, 2, **one, last_token_ns=130 * MS)],
    )
    assert recording.con.execute("FROM itl").fetchall() == []
    assert recording.con.execute("SELECT tpot_ms FROM tpot WHERE request_id = 2").fetchall() == [
        (None,)
    ]


def test_outcome_counts_failures_and_invalid_cells_but_metrics_leave_them_out(
    recording: Recording,
) -> None:
    fill(
        recording,
        [cell(1), cell(2, verdict="INVALID", reasons=["errors: ..."])],
        [request(1, 1), request(1, 2, **FAILED), request(2, 1)],
    )
    rows = recording.con.execute(
        "SELECT cell_id, verdict, requests, failed, success_frac, output_tokens, output_tok_per_s "
        "FROM outcome ORDER BY cell_id"
    ).fetchall()
    assert rows == [(1, "VALID", 2, 1, 0.5, 4, 2.0), (2, "INVALID", 1, 0, 1.0, 4, 2.0)]
    assert recording.con.execute("SELECT DISTINCT cell_id FROM ttft").fetchall() == [(1,)]


def test_interval_is_students_t_over_repeats(recording: Recording) -> None:
    # Medians of the three repeats: 10, 20 and 30 ms. Mean 20, s = 10, t(2) = 4.303,
    # half width 4.303 * 10 / sqrt(3) = 24.843.
    ttfts = {1: (9, 10, 50), 2: (20, 20, 20), 3: (1, 30, 31)}
    fill(
        recording,
        [cell(repeat, repeat=repeat) for repeat in ttfts],
        [
            request(repeat, i, first_token_ns=(110 + ms) * MS)
            for repeat, all_ms in ttfts.items()
            for i, ms in enumerate(all_ms)
        ],
    )
    row = recording.con.execute(
        "SELECT engine, prompt_tokens, repeats, requests, p50_ms, low_ms, high_ms FROM ttft_p50"
    ).fetchone()
    assert row == (
        "emulator",
        8,
        3,
        9,
        pytest.approx(20),
        pytest.approx(20 - 24.843, abs=1e-3),
        pytest.approx(20 + 24.843, abs=1e-3),
    )


def test_t_quantiles_are_those_of_the_tables(recording: Recording) -> None:
    row = recording.con.execute("SELECT t975(0), t975(1), t975(4), t975(30), t975(31)").fetchone()
    assert row == (
        None,
        pytest.approx(12.706),
        pytest.approx(2.776),
        pytest.approx(2.042),
        pytest.approx(1.960),
    )


def test_a_quantile_that_the_sample_does_not_support_is_not_given(recording: Recording) -> None:
    # 64 requests bound a p90 and not a p99: 0.9^64 + 64 * 0.1 * 0.9^63 = 0.0096.
    late = {"first_token_ns": 210 * MS}
    requests = [request(1, i, **(late if i > 32 else {})) for i in range(1, 64)]
    fill(recording, [cell(1)], requests)
    ask = "SELECT q, value_ms, requests FROM level_quantile WHERE metric = 'ttft' ORDER BY q"
    few = recording.con.execute(ask).fetchall()
    assert few == [(0.5, 20, 63), (0.9, None, 63), (0.99, None, 63)]
    fill(recording, [], [request(1, 64, **late)])
    enough = recording.con.execute(ask).fetchall()
    assert enough == [(0.5, 60, 64), (0.9, 100, 64), (0.99, None, 64)]


def test_the_steady_window_leaves_out_ramp_up_and_drain(recording: Recording) -> None:
    """Two slots in step: ends at 1 and 1.01 s, 2 and 2.01 s, 3 and 3.01 s, then 9 s; the last
    request is sent at 3.01 s. From the second end to then, 2 s, four answers of four tokens end."""
    times = [(0, 1), (0, 1.01), (1, 2), (1.01, 2.01), (2, 3), (2.01, 3.01), (3.01, 9)]
    requests = [
        request(1, i, sent_ns=round(sent * 1000 * MS), ended_ns=round(ended * 1000 * MS))
        for i, (sent, ended) in enumerate(times, start=1)
    ]
    fill(recording, [cell(1, in_flight=2, ended_ns=9_000 * MS)], requests)
    ask = "SELECT window_s, requests, output_tokens, output_tok_per_s FROM steady_outcome"
    assert recording.con.execute(ask).fetchall() == [(2, 4, 16, 8)]
    whole = recording.con.execute("SELECT output_tok_per_s FROM outcome").fetchall()
    assert whole == [(pytest.approx(28 / 9),)]


def test_a_prefix_is_cached_in_whole_blocks_and_never_to_its_last_token(
    recording: Recording,
) -> None:
    """vLLM's block of 128 as it says it itself, SGLang's of one; the prompts have 257 tokens."""
    labels = "_block_size_resolved=True,block_size=128,hash_block_size=None"
    with recording.transaction():
        recording.insert("engine_run", [run(i, engine) for i, engine in enumerate(ENGINES, 1)])
        metric = {"run_id": 1, "t_ns": 1, "name": "vllm:cache_config_info", "value": 1.0}
        recording.insert("engine_metric", [metric | {"labels": labels}])
    shared = (0, 1, 127, 128, 255, 256, 257)
    fill(
        recording,
        [cell(i, run_id=i, engine=engine) for i, engine in enumerate(ENGINES, 1)],
        [
            request(i, number, prompt_tokens=257, shared_prefix_tokens=tokens)
            for i in (1, 2, 3)
            for number, tokens in enumerate((*shared, None), 1)
        ],
    )
    ask = "SELECT list(predicted_tokens ORDER BY request_id) FROM cached_prefix WHERE engine = ?"
    found = [recording.con.execute(ask, [engine]).fetchall()[0][0] for engine in ENGINES]
    assert found == [
        [0, 0, 0, 128, 128, 256, 256],
        [0, 1, 127, 128, 255, 256, 256],
        [None] * 7,  # an engine that has no such cache
    ]


def test_sglangs_block_is_the_last_page_size_of_its_command_line(recording: Recording) -> None:
    lines = [(), ("--page-size", "16"), ("--page-size", "16", "--port", "1", "--page-size=64")]
    with recording.transaction():
        recording.insert("engine_run", [run(i, "sglang", *a) for i, a in enumerate(lines, 1)])
    fill(
        recording,
        [cell(i, run_id=i, engine="sglang") for i in (1, 2, 3)],
        [request(i, 1, prompt_tokens=257, shared_prefix_tokens=100) for i in (1, 2, 3)],
    )
    ask = "SELECT block_tokens, predicted_tokens FROM cached_prefix ORDER BY run_id"
    assert recording.con.execute(ask).fetchall() == [(1, 100), (16, 96), (64, 64)]


def test_no_prefix_is_predicted_where_the_server_adds_tokens_of_its_own(
    recording: Recording,
) -> None:
    with recording.transaction():
        recording.insert("engine_run", [run(1, "sglang")])
    fill(
        recording,
        [cell(1, engine="sglang"), cell(2, engine="sglang", added_tokens=5)],
        [request(i, 1, prompt_tokens=257, shared_prefix_tokens=100) for i in (1, 2)],
    )
    assert recording.con.execute("SELECT cell_id FROM cached_prefix").fetchall() == [(1,)]


def test_kinds_and_extras_are_levels_of_their_own(recording: Recording) -> None:
    """TTFT 20 ms for edits; 30 for prose, and 50 where something is merged into the body."""
    levels = [("edit", "none", 130), ("prose", "none", 140), ("prose", "schema", 160)]
    fill(
        recording,
        [cell(n, kind=kind, extra=extra) for n, (kind, extra, _) in enumerate(levels, start=1)],
        [
            request(n, 1, extra={"top": n}, first_token_ns=at * MS)
            for n, (*_, at) in enumerate(levels, start=1)
        ],
    )
    con = recording.con
    found = con.execute("SELECT kind, extra, repeats, p50_ms FROM ttft_p50 ORDER BY ALL").fetchall()
    assert found == [("edit", "none", 1, 20), ("prose", "none", 1, 30), ("prose", "schema", 1, 50)]
    assert con.execute("SELECT count(*) FROM level_outcome").fetchone() == (3,)
    merged = "SELECT extra, request_extra ->> '$.top' FROM measured_request ORDER BY cell_id"
    assert con.execute(merged).fetchall() == [("none", "1"), ("none", "2"), ("schema", "3")]
