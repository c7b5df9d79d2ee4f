"""What a token is, and when it came: rows 1, 2, 3, 12 and 14 of the known failure modes.

Each expected time is the emulator's setting; its timers resolve a millisecond, and a busy machine
is late, never early: so the smallest of several values is held against it.
"""

from typing import Any

import pytest

from tests.failure_modes.conftest import Recorded


def one(recorded: Recorded, variant: str, sql: str) -> tuple[Any, ...]:
    (row,) = recorded(variant).execute(sql).fetchall()
    return tuple(row)


def test_01_itl_counts_chunks_not_tokens(recorded: Recorded) -> None:
    """Four tokens every 20 ms: the gap between chunks is 20 ms, a token's share of it 5 ms."""
    sql = "SELECT count(*), median({0}) FROM {1}"
    chunks, gap_ms = one(recorded, "four_a_chunk", sql.format("gap_ms", "inter_chunk"))
    tokens, itl_ms = one(recorded, "four_a_chunk", sql.format("itl_ms", "itl"))
    requests, tpot_ms = one(recorded, "four_a_chunk", sql.format("tpot_ms", "tpot"))
    assert (requests, chunks, tokens) == (8, 8, 8 * 4)
    assert (gap_ms, itl_ms, tpot_ms) == pytest.approx((20, 5, 5), abs=2)


def test_02_ttft_skips_reasoning(recorded: Recorded) -> None:
    """Four tokens of reasoning come first, 10 ms apart: the answer begins 40 ms later."""
    any_ms, answer_ms, apart_ms = one(
        recorded,
        "reasoning",
        "SELECT min(from_sent_ms), min(answer_from_sent_ms),"
        " median(answer_from_sent_ms - from_sent_ms) FROM ttft",
    )
    assert any_ms >= 19 and answer_ms >= 59
    assert apart_ms == pytest.approx(40, abs=5)


def test_03_role_only_first_chunk_is_counted_as_a_token(recorded: Recorded) -> None:
    """The role comes at once and the first token after 80 ms; neither a TTFT nor an ITL of it."""
    ttft_ms, byte_ms = one(
        recorded,
        "role_first",
        "SELECT min((first_token_ns - sent_ns) / 1e6), min((first_byte_ns - sent_ns) / 1e6)"
        " FROM measured_request",
    )
    assert ttft_ms >= 79 and byte_ms < 60
    assert one(recorded, "role_first", "SELECT count(*) FROM itl") == (8 * 7,)


def test_12_text_tokenized_again_is_not_what_was_generated(recorded: Recorded) -> None:
    """Half of the texts are held back: the server's count stands, the client's is a check."""
    counts = one(
        recorded,
        "held_back",
        "SELECT min(output_tokens), max(output_tokens), max(client_output_tokens),"
        " max(len(chunk_tokens)) FROM measured_request",
    )
    assert counts == (8, 8, 4, 0)
    assert one(recorded, "held_back", "SELECT count(*) FROM itl") == (0,)  # unknown, so not said


def test_14_random_words_misrepresent_speculation(recorded: Recorded) -> None:
    """Accepted tokens a step are in the recording, so a drafter's luck can't pass for its speed."""
    accepted = recorded("four_a_chunk").execute("SELECT DISTINCT tokens FROM chunk").fetchall()
    assert accepted == [(4,)]
