"""A recording of hand-made integers: every expected value in the tests can be computed by eye."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harness.recording.store import Recording

MS = 1_000_000


def create(path: Path) -> Recording:
    return Recording.create(
        path,
        recording_id="test",
        episode="77",
        tier="cpu",
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
        finished_at=None,
        experiment_toml="",
        experiment_sha256="",
        engines=["emulator"],
    )


def cell(cell_id: int, **changes: Any) -> dict[str, Any]:
    return {
        "cell_id": cell_id,
        "session_id": 1,
        "run_id": 1,
        "engine": "emulator",
        "variant": "emulator",
        "sweep": "length",
        "repeat": 1,
        "position": cell_id,
        "endpoint": "completions",
        "prompt_tokens": 8,
        "output_tokens": 4,
        "added_tokens": 0,
        "load": "closed",
        "in_flight": 1,
        "rate_per_s": None,
        "burstiness": None,
        "capacity_frac": None,
        "connections": 1,
        "processes": 1,
        "cold": True,
        "min_requests": 1,
        "min_duration_s": 0.0,
        "warmup_requests": 1,
        "seed_prompts": 1,
        "seed_arrivals": 2,
        "seed_sampling": 3,
        "started_ns": 0,
        "measured_ns": 0,
        "ended_ns": 2_000 * MS,
        "verdict": "VALID",
        "reasons": [],
        "client": {"cpu_frac": 0.1},
    } | changes


def request(cell_id: int, request_id: int, **changes: Any) -> dict[str, Any]:
    """Scheduled at 100 ms, sent at 110, tokens at 130 (1), 140 (1) and 170 (2): TTFT 20 ms."""
    return {
        "cell_id": cell_id,
        "request_id": request_id,
        "phase": "measured",
        "process": 0,
        "slot": 0,
        "prompt_hash": request_id,
        "asked_prompt_tokens": 8,
        "asked_output_tokens": 4,
        "scheduled_ns": 100 * MS,
        "sent_ns": 110 * MS,
        "first_byte_ns": 112 * MS,
        "first_token_ns": 130 * MS,
        "first_answer_ns": 140 * MS,
        "last_token_ns": 170 * MS,
        "ended_ns": 171 * MS,
        "prompt_tokens": 8,
        "cached_tokens": 0,
        "output_tokens": 4,
        "client_output_tokens": 4,
        "chunk_gap_us": [10_000, 30_000],
        "chunk_tokens": [1, 1, 2],
        "chunk_shared": [False, False, False],
        "finish_reason": "length",
        "http_status": 200,
        "error": None,
        "output_text": "",
    } | changes


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    made = create(tmp_path / "test.partial.duckdb")
    yield made
    made.close()
