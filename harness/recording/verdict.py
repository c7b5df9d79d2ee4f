"""VALID or INVALID, with named reasons: whether a cell may enter a metric.

An INVALID cell is kept in the recording and shown on its page; it never enters a comparison.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.load.parse import ParsedRequest

SHARED_TOKENS = 2  # first words that two prompts can share by chance: no block, no saving
CLIENT_BUSY_FRAC = 0.8  # of its core: above this, lateness of the client shows in the figures


@dataclass(frozen=True, slots=True)
class Asked:
    """What the cell asked of the server. added_tokens: what the server adds to every prompt."""

    prompt_tokens: int
    output_tokens: int
    min_requests: int
    added_tokens: int = 0


def judge(
    asked: Asked,
    measured: Sequence[ParsedRequest],
    client_cpu_frac: float,
    minimums_met: bool,
    telemetry_faults: Sequence[str] = (),
) -> list[str]:
    """The reasons against the cell; empty where it is VALID."""
    good = [r for r in measured if r.error is None]
    checks = [
        _errors(measured),
        _counted("prompt_length", "prompt", asked.prompt_tokens, [r.prompt_tokens for r in good]),
        _counted("output_length", "output", asked.output_tokens, [r.output_tokens for r in good]),
        _warm_cache([r.cached_tokens or 0 for r in good], asked.added_tokens + SHARED_TOKENS),
        None
        if minimums_met and len(measured) >= asked.min_requests
        else f"minimums: {len(measured)} of {asked.min_requests} requests, or ended too early",
        None
        if client_cpu_frac <= CLIENT_BUSY_FRAC
        else f"client_busy: the load process used {client_cpu_frac:.0%} of its core",
        f"telemetry: {telemetry_faults[0]}" if telemetry_faults else None,
    ]
    return [reason for reason in checks if reason is not None]


def _errors(measured: Sequence[ParsedRequest]) -> str | None:
    failed = [r.error for r in measured if r.error is not None]
    return (
        f"errors: {len(failed)} of {len(measured)} failed, first: {failed[0]}" if failed else None
    )


def _counted(name: str, what: str, asked: int, counts: Sequence[int | None]) -> str | None:
    wrong = [count for count in counts if count != asked]
    if not wrong:
        return None
    return f"{name}: {len(wrong)} of {len(counts)} had {wrong[0]} {what} tokens, not {asked}"


def _warm_cache(cached: Sequence[int], allowed: int) -> str | None:
    hits = [count for count in cached if count > allowed]
    if not hits:
        return None
    return (
        f"warm_cache: {len(hits)} of {len(cached)} prompts hit the cache, up to {max(hits)} tokens"
    )
