"""What a tool saw against what was so, on integers that can be checked by hand."""

from harness.peers import truth
from harness.peers.outputs import Seen
from harness.peers.truth import Truth

# Two requests of three chunks: written 100, 120 and 140 after the first one's arrival.
FIRST = Truth(1, 1_000, "a-1", [1_100, 1_120, 1_140])
SECOND = Truth(2, 2_000, "", [2_200, 2_210, 2_220])


def test_requests_are_matched_by_number_or_by_the_id_that_was_sent() -> None:
    by_number, by_id = Seen("2", True), Seen("a-1", True)
    lost, failed = Seen("", True), Seen("1", False)
    pairs = truth.match([FIRST, SECOND], [by_number, by_id, lost, failed])
    assert pairs == [(SECOND, by_number), (FIRST, by_id)]


def test_an_error_is_what_the_client_adds_to_the_truth() -> None:
    seen = Seen("1", True, ttft_ns=130, gaps_ns=(15, 27), span_ns=42)
    pairs = truth.match([FIRST], [seen])
    assert truth.ttft_errors_ns(pairs).tolist() == [30]  # 100 was so
    assert truth.gap_errors_ns(pairs).tolist() == [5, 7]  # 20 and 20 were so
    assert truth.mean_gap_errors_ns(pairs).tolist() == [1.0]  # 42 / 2 against 40 / 2


def test_gaps_are_compared_only_where_all_chunks_were_seen() -> None:
    merged = Seen("1", True, ttft_ns=100, gaps_ns=(40,), span_ns=40)
    unknown = Seen("2", True, ttft_ns=200, gaps_ns=None, span_ns=20)
    pairs = truth.match([FIRST, SECOND], [merged, unknown])
    assert truth.gap_errors_ns(pairs).tolist() == []
    assert truth.gap_counts(pairs) == (4, 0)  # two gaps of each were written
    assert truth.gap_counts(pairs[1:]) == (2, None)  # this tool keeps no gaps
    whole = Seen("2", True, 200, (10, 10), 20)
    assert truth.gap_counts(truth.match([FIRST, SECOND], [merged, whole])) == (4, 2)
    assert truth.mean_gap_errors_ns(pairs).tolist() == [0.0, 0.0]


def test_rates_and_the_window_of_a_run() -> None:
    pairs = truth.match(
        [FIRST, SECOND],
        [Seen("1", True, 200, (20, 20), 40), Seen("2", True, 200, (10, 10), 20)],
    )
    # seen from 1,200 (the first token) to 2,220 (the end of the second answer)
    assert truth.window_ns(pairs) == (1_000, 2_220)
    assert truth.seen_per_s(pairs) == 6 / 1_020e-9
    assert truth.written_per_s([FIRST, SECOND]) == 6 / 1_120e-9
