"""Ratios, sentences and refusals on hand-made integers."""

import re
from math import exp, log

import pytest

from harness.analysis.cells import Cells, parse
from harness.analysis.compare import Comparison, compare
from harness.errors import HarnessError
from harness.recording.store import Recording

FAST, SLOW = Cells({"engine": "fast"}), Cells({"engine": "slow"})


def change(made: Recording, sql: str) -> None:
    with made.transaction():
        made.con.execute(sql)


def ttft(made: Recording, statistic: str = "p50") -> Comparison:
    return compare(made.con, FAST, SLOW, "ttft", statistic)


def test_the_ratio_is_the_geometric_mean_of_the_repeats(made: Recording) -> None:
    found = ttft(made)
    assert [(each.a, each.b, each.samples) for each in found.ratios] == [
        (16.5, 16.5 * factor, 12) for factor in (2, 3, 4, 5, 6)
    ]
    assert found.ratio == pytest.approx(exp(-log(720) / 5))  # 2 * 3 * 4 * 5 * 6
    assert found.low is not None and found.high is not None
    assert 0.1 < found.low < 0.27 < found.high < 1 and found.verdict == "better"
    said = rf"TTFT p50 of fast is 0\.27 times that of slow \[{found.low:.2f}, {found.high:.2f}\]"
    assert re.fullmatch(said + ": better.", found.sentence)


def test_swapped_sides_are_worse_by_the_inverse(made: Recording) -> None:
    one, other = ttft(made), compare(made.con, SLOW, FAST, "ttft")
    assert other.verdict == "worse"
    assert (other.ratio, other.low, other.high) == pytest.approx(
        tuple(1 / each for each in (one.ratio, one.high, one.low) if each)
    )


def test_a_changed_recording_changes_the_sentence(made: Recording) -> None:
    assert ttft(made).sentence.endswith("better.")
    change(made, "UPDATE request SET first_token_ns = 110000000 + 400000000 WHERE cell_id <= 5")
    assert ttft(made).sentence.endswith("worse.")
    change(
        made,
        "UPDATE request SET first_token_ns = 110000000 + 1000000 * request_id"
        " * CASE WHEN cell_id <= 5 THEN cell_id ELSE 11 - cell_id END",
    )
    assert ttft(made).sentence.endswith("a tie.")


def test_more_is_better_of_a_throughput(made: Recording) -> None:
    change(made, "UPDATE cell SET ended_ns = 4000000000 WHERE engine = 'slow'")
    found = compare(made.con, FAST, SLOW, "output_tok_per_s")
    assert [(each.a, each.b) for each in found.ratios] == [(24, 12)] * 5  # 48 tokens in 2 s, in 4 s
    assert found.sentence == (
        "Output throughput of fast is 2.00 times that of slow [2.00, 2.00]: better."
    )


def test_token_metrics_and_the_mean(made: Recording) -> None:
    found = compare(made.con, FAST, SLOW, "itl", "mean")
    assert {(each.a, each.b, each.samples) for each in found.ratios} == {(10, 20, 36)}
    assert compare(made.con, FAST, SLOW, "tpot").ratio == 0.5


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("UPDATE request SET prompt_hash = 99 WHERE cell_id = 7 AND request_id = 3",
         r"prompts differ in repeat 2, 1 in flight.*: 12 of fast and 12 of slow, 11 of them the"),
        ("DELETE FROM request WHERE cell_id = 8 AND request_id = 12",
         r"prompts differ in repeat 3.*: 12 of fast and 11 of slow, 11 of them"),
        ("UPDATE request SET prompt_tokens = 9 WHERE cell_id = 6",
         r"prompt tokens by the server's count differ in repeat 1.*96 in all of fast, 108 of slow"),
        ("UPDATE request SET output_tokens = 3 WHERE cell_id = 9 AND request_id = 1",
         r"output tokens .* repeat 4.* for 1 of the prompts: 48 in all of fast, 47 of slow"),
        ("UPDATE cell SET session_id = 2 WHERE run_id = 2", r"session differs in repeat 1"),
        ("UPDATE cell SET endpoint = 'chat' WHERE cell_id = 6", r"endpoint differs in repeat 1"),
        ("UPDATE cell SET added_tokens = 2 WHERE cell_id = 6", r"tokens added .* 0 of fast, 2 of"),
        ("UPDATE engine_run SET model_id = 'other' WHERE run_id = 2", r"model differs in repeat 1"),
        ("DELETE FROM cell WHERE cell_id = 7", r"slow has no cell in repeat 2 at 1 in flight"),
        ("UPDATE cell SET verdict = 'INVALID', reasons = ['errors: 1'] WHERE run_id = 2",
         r"slow is INVALID in repeat 1.*\(errors: 1\)"),
        ("UPDATE cell SET verdict = 'INVALID' WHERE cell_id IN (1, 7)",
         r"3 repeats; an interval takes at least 4"),
    ],
)  # fmt: skip
def test_unequal_work_is_refused_by_its_first_inequality(
    made: Recording, sql: str, why: str
) -> None:
    change(made, sql)
    found = ttft(made)
    assert (found.verdict, found.ratio) == ("not comparable", None)
    assert re.search(why, found.why), found.why
    assert found.sentence == f"TTFT p50 of fast and slow: not comparable, because {found.why}."


def test_the_proof_shows_each_check_with_both_sides(made: Recording) -> None:
    change(made, "UPDATE request SET output_tokens = 3 WHERE cell_id = 9")
    rows = {each.check: (each.a, each.b, each.equal) for each in ttft(made).checks}
    assert rows["VALID cells"] == ("5 of 5", "5 of 5", True)
    assert rows["weights"] == ("0" * 12, "0" * 12, True)
    assert rows["output tokens, by the server"] == ("240", "228", False)
    # 78 is the sum of the twelve prompts' hashes, in five repeats.
    assert rows["prompts, by hash"] == (f"60 ({390:08x})", f"60 ({390:08x})", True)


def test_an_invalid_cell_takes_its_repeat_out_of_both_sides(made: Recording) -> None:
    change(made, "UPDATE cell SET verdict = 'INVALID' WHERE cell_id = 3")
    found = ttft(made)
    assert [each.place.split(",")[0] for each in found.ratios] == [
        f"repeat {n}" for n in (1, 2, 4, 5)
    ]
    assert found.sentence.endswith(
        " Repeat 3 is left out: a cell is INVALID or of another session."
    )


def test_a_repeat_that_was_broken_off_is_left_out(made: Recording) -> None:
    change(made, "UPDATE cell SET session_id = 2 WHERE cell_id = 10")
    found = ttft(made)
    assert len(found.ratios) == 4
    assert "Repeat 5 is left out" in found.sentence


def test_a_prompt_that_is_asked_twice_pairs_in_turn(made: Recording) -> None:
    change(made, "UPDATE request SET prompt_hash = 1 WHERE request_id = 2")
    assert ttft(made).ratio == pytest.approx(exp(-log(720) / 5))


def test_a_percentile_needs_its_samples(made: Recording) -> None:
    assert "p99 needs 662 values and a repeat holds 12, which support p56" in (
        ttft(made, "p99").why
    )


def test_levels_are_paired_and_averaged_unless_a_side_names_one(made: Recording) -> None:
    change(made, "UPDATE cell SET in_flight = 2 WHERE repeat >= 4")
    assert "geometric mean of 2 levels: better" in ttft(made).sentence
    one = compare(made.con, Cells({"engine": "fast", "in_flight": 1}), SLOW, "ttft")
    assert one.why.startswith("3 repeats")


def test_two_levels_of_one_engine_are_told_apart(made: Recording) -> None:
    change(made, "UPDATE cell SET engine = 'fast', variant = 'fast', in_flight = 2, run_id = 1"
                 " WHERE cell_id > 5")  # fmt: skip
    found = compare(made.con, parse("engine=fast,in_flight=1"), parse("in_flight=2"), "ttft")
    assert found.sentence.startswith("TTFT p50 of fast is")
    both = [parse(f"engine=fast,in_flight={n}") for n in (1, 2)]
    found = compare(made.con, both[0], both[1], "ttft")
    assert "of fast (1 in flight) is 0.27 times that of fast (2 in flight)" in found.sentence


def test_how_many_processes_carried_the_load_is_no_level(made: Recording) -> None:
    change(made, "UPDATE cell SET processes = 2 WHERE engine = 'slow'")
    assert ttft(made).verdict == "better"
    assert compare(made.con, parse("processes=1"), parse("processes=2"), "ttft").ratio is not None


@pytest.mark.parametrize(
    ("a", "metric", "statistic", "message"),
    [
        ("engine=fst", "ttft", "p50", "no cell fits engine=fst. Recorded values of engine: fast"),
        ("motor=fast", "ttft", "p50", "no cell has a key 'motor'; known: engine, variant, sweep"),
        ("fast", "ttft", "p50", "'fast': write key=value"),
        ("in_flight=1", "ttft", "p50", r"in_flight=1 fits two cells of repeat 1 .*\(fast and slow"),
        ("in_flight=x", "ttft", "p50", "in_flight=x"),
        ("engine=fast", "speed", "p50", "metric 'speed' is not recorded; known: ttft, "),
        ("engine=fast", "ttft", "p100", "statistic 'p100': say mean, or a percentile"),
        ("engine=fast", "ttft", "median", "statistic 'median'"),
    ],
)
def test_a_fault_names_what_there_is(
    made: Recording, a: str, metric: str, statistic: str, message: str
) -> None:
    with pytest.raises(HarnessError, match=message):
        compare(made.con, parse(a), SLOW, metric, statistic)
