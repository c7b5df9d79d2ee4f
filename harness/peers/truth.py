"""The emulator's truth against what a tool saw of the same requests.

TTFT: truth is the first token chunk's write minus the request's arrival at the server (the kernel's
stamp), so what a client adds on its own side is error. A gap: truth is the difference of two
writes. Errors are absolute, in ns. A write is stamped before write(2), so the write is in them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from harness.peers.outputs import Seen

Pair = tuple["Truth", Seen]


@dataclass(frozen=True, slots=True)
class Truth:
    """One request as the emulator served it: emulator_truth.py."""

    number: int
    received_ns: int
    request_id: str
    write_ns: list[int]


def match(truth: Iterable[Truth], seen: Iterable[Seen]) -> list[Pair]:
    """Each request that a tool counts as a success with its truth; those without one are left."""
    known = {str(each.number): each for each in truth}
    known |= {each.request_id: each for each in known.values() if each.request_id}
    return [(known[each.key], each) for each in seen if each.ok and each.key in known]


def ttft_errors_ns(pairs: Iterable[Pair]) -> np.ndarray:
    return np.array(
        [
            abs(seen.ttft_ns - (truth.write_ns[0] - truth.received_ns))
            for truth, seen in pairs
            if seen.ttft_ns is not None and truth.write_ns
        ],
        dtype=np.int64,
    )


def gap_errors_ns(pairs: Iterable[Pair]) -> np.ndarray:
    """Of every gap of the requests of which the tool saw as many chunks as were written: of any
    other it can't be told which gap is which. gap_counts says how many are left out."""
    errors = [
        np.abs(np.array(seen.gaps_ns) - np.diff(truth.write_ns))
        for truth, seen in pairs
        if seen.gaps_ns and len(seen.gaps_ns) == len(truth.write_ns) - 1
    ]
    return np.concatenate(errors) if errors else np.array([], dtype=np.int64)


def gap_counts(pairs: Iterable[Pair]) -> tuple[int, int | None]:
    """Gaps that were written, and those that were compared: None where the tool keeps no gaps."""
    pairs = list(pairs)
    keeps = any(seen.gaps_ns is not None for _, seen in pairs)
    written = sum(max(0, len(truth.write_ns) - 1) for truth, _ in pairs)
    return written, len(gap_errors_ns(pairs)) if keeps else None


def mean_gap_errors_ns(pairs: Iterable[Pair]) -> np.ndarray:
    """Of each request's mean gap: all that can be asked of a tool that keeps no chunk times."""
    return np.array(
        [
            abs(seen.span_ns - (truth.write_ns[-1] - truth.write_ns[0])) / (len(truth.write_ns) - 1)
            for truth, seen in pairs
            if seen.span_ns is not None and len(truth.write_ns) > 1
        ]
    )


def window_ns(pairs: Iterable[Pair]) -> tuple[int, int]:
    """From the first request's arrival to the end of the last answer as the tool saw it."""
    pairs = list(pairs)
    ends = [truth.received_ns + (seen.ttft_ns or 0) + (seen.span_ns or 0) for truth, seen in pairs]
    return min(truth.received_ns for truth, _ in pairs), max(ends)


def seen_per_s(pairs: Iterable[Pair]) -> float:
    """Chunks a second at which the tool took the streams in: from its first token to its last."""
    pairs = list(pairs)
    starts = [truth.received_ns + (seen.ttft_ns or 0) for truth, seen in pairs]
    chunks = sum(len(truth.write_ns) for truth, _ in pairs)
    return chunks / ((window_ns(pairs)[1] - min(starts)) / 1e9)


def written_per_s(truth: Iterable[Truth]) -> float:
    """Chunks a second at which the emulator wrote them."""
    writes = np.concatenate([each.write_ns for each in truth])
    return len(writes) / (np.ptp(writes) / 1e9)
