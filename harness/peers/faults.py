"""Which faults of a server a tool notices: what counts is what the tool says.

Every second request has the fault. A fault that makes an answer worthless is noticed where the tool
counts just those requests as failed; any other, where the tool's own figure is the right one. A
tool that says nothing that can be read, because it crashed or was ended, has noticed nothing.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.errors import HarnessError
from harness.peers import truth
from harness.peers.drive import BOTH_CORES, Runner, emulator, take_truth
from harness.peers.outputs import Report
from harness.peers.tools import CLIENT_CORE, Load

REQUESTS, CHUNKS, GAP_MS, TTFT_MS = 8, 20, 10, 300
SLACK_MS = 50  # a TTFT that is further off was taken from another event

Judge = Callable[[Report, list[truth.Truth]], tuple[bool, str]]


def _failed(report: Report, _: list[truth.Truth]) -> tuple[bool, str]:
    failed = sum(not seen.ok for seen in report.seen)
    failed += max(0, REQUESTS - len(report.seen))  # some tools list successes alone
    return failed == REQUESTS // 2, f"{failed} of {REQUESTS} failed"


def _counts(report: Report, _: list[truth.Truth]) -> tuple[bool, str]:
    noticed = sum(not seen.ok or seen.output_tokens == CHUNKS // 2 for seen in report.seen)
    tokens = sorted({seen.output_tokens or 0 for seen in report.seen})
    return noticed == REQUESTS // 2, f"output tokens recorded: {', '.join(map(str, tokens))}"


def _first_token(report: Report, served: list[truth.Truth]) -> tuple[bool, str]:
    errors_ms = truth.ttft_errors_ns(truth.match(served, report.seen)) / 1e6
    if len(errors_ms) < REQUESTS:
        return False, f"a TTFT of {len(errors_ms)} requests of {REQUESTS}"
    worst = float(np.max(errors_ms))
    return worst < SLACK_MS, f"TTFT off by up to {worst:.0f} ms"


def _per_token(report: Report, _: list[truth.Truth]) -> tuple[bool, str]:
    # 20 chunks of 4 tokens: 19 gaps between 80 tokens
    right_ms = GAP_MS * (CHUNKS - 1) / (CHUNKS * 4 - 1)
    found = report.token_gap_ms
    if found is None:
        return False, "no time between tokens"
    said = f"{found:.2f} ms between tokens, {right_ms:.2f} is right"
    return abs(found / right_ms - 1) < 0.25, said


@dataclass(frozen=True, slots=True)
class Fault:
    """options: the emulator's. right: what a tool must say to have noticed it. is_timed: its figure
    is a time, so that nothing else may run beside it, and it has one core as when it is measured.
    """

    name: str
    what: str
    right: str
    options: tuple[str, ...]
    judge: Judge
    chat: bool = False
    tokens_per_chunk: int = 1
    is_timed: bool = False

    @classmethod
    def worthless(cls, name: str, what: str) -> "Fault":
        options = ("--fault", name, "--fault-every", "2")
        return cls(name, what, "every second request failed", options, _failed)


FAULTS = (
    Fault.worthless("empty", "status 200 and no token"),
    Fault.worthless("http_500", "status 500"),
    Fault.worthless("error_event", "an error object half-way through the stream"),
    Fault.worthless("half_json", "the stream ends properly inside an event"),
    Fault.worthless("close", "the connection closes half-way through the stream"),
    Fault(
        "short",
        "half of the tokens asked for",
        "the request failed, or the number of tokens that came",
        ("--fault", "short", "--fault-every", "2"),
        _counts,
    ),
    Fault(
        "role_delay",
        "a chunk with the role alone, long before the first token",
        "a TTFT of the first token",
        ("--fault", "role_delay"),
        _first_token,
        chat=True,
        is_timed=True,
    ),
    Fault(
        "several_tokens",
        "four tokens in every chunk",
        "a time between tokens, not chunks",
        ("--tokens-per-chunk", "4"),
        _per_token,
        tokens_per_chunk=4,
        is_timed=True,
    ),
)


def probe(runner: Runner, fault: Fault, model_dir: Path) -> tuple[bool, str]:
    """Runs the tool once against the fault: whether it noticed, and what it said."""
    timing = ("--ttft-ms", str(TTFT_MS), "--gap-ms", str(GAP_MS))
    with emulator(*timing, *fault.options) as url, tempfile.TemporaryDirectory() as folder:
        load = Load(
            url, model_dir, Path(folder), REQUESTS, CHUNKS, fault.tokens_per_chunk, fault.chat
        )
        run = runner.run(load, (CLIENT_CORE,) if fault.is_timed else BOTH_CORES)
        try:
            report = runner.tool.report(load.folder)
        except HarnessError as error:
            return False, f"exit status {run.status}; {error}"
        return fault.judge(report, take_truth(url))
