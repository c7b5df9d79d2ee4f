"""Was it the work asked for, all of it, and new to the server? Rows 4 to 7, 11 and 13."""

from tests.failure_modes.conftest import Recorded


def reasons(recorded: Recorded, variant: str) -> list[str]:
    ((verdict, found),) = recorded(variant).execute("SELECT verdict, reasons FROM cell").fetchall()
    assert verdict == "INVALID"
    return list(found)


def test_04_prefix_cache_warms_the_cold_run(recorded: Recorded) -> None:
    """By the usage of each answer; and by the engine's counter where no usage says it."""
    said = "warm_cache: 8 of 8 prompts hit the cache, up to 16 tokens"
    assert said in reasons(recorded, "warm")
    unsaid = "warm_cache: the engine took 160 prompt tokens from its cache, by its counter"
    assert unsaid in reasons(recorded, "warm_unsaid")  # 16 of each of 10, warm-up included


def test_05_controlled_cache_hits_are_hard(recorded: Recorded) -> None:
    """Sessions whose prompts grow from 40 by 8 + 16 tokens a turn; blocks of 16 tokens are kept.

    A turn finds the whole blocks of the prompt before it: of 40 tokens 32, and all of 64.
    """
    con = recorded("prefix_cache")
    turns = con.execute(
        "SELECT turn, list(DISTINCT server_prompt_tokens), list(DISTINCT cached_tokens)"
        " FROM measured_request GROUP BY turn ORDER BY turn"
    ).fetchall()
    assert turns == [(1, [40], [0]), (2, [64], [32]), (3, [88], [64])]


def test_06_empty_streams_count_as_success(recorded: Recorded) -> None:
    assert "errors: 8 of 8 failed, first: empty stream" in reasons(recorded, "empty")
    con = recorded("empty")
    found = con.execute("SELECT success_frac, requests_per_s FROM outcome").fetchall()
    assert found == [(0.0, 0.0)]
    assert con.execute("SELECT count(*) FROM ttft").fetchall() == [(0,)]


def test_07_failed_requests_are_hidden(recorded: Recorded) -> None:
    """Each fourth of ten fails; two of those are measured."""
    assert reasons(recorded, "failing")[0].startswith("errors: 2 of 8 failed, first: HTTP 500")
    row = recorded("failing").execute("SELECT requests, failed, success_frac FROM outcome")
    assert row.fetchall() == [(8, 2, 0.75)]


def test_11_the_prompt_is_not_the_length_asked_for(recorded: Recorded) -> None:
    found = reasons(recorded, "other_prompt")
    assert any(each.startswith("prompt_length: ") and "had 39" in each for each in found)


def test_13_the_output_length_is_not_honoured(recorded: Recorded) -> None:
    assert "output_length: 8 of 8 had 4 output tokens, not 8" in reasons(recorded, "short")
