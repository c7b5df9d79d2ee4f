"""The climb to the ceiling, what stops it, and on which cores, all on made-up values."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness import calibrate
from harness.calibrate import climb, counts, split, summit
from harness.errors import HarnessError


def steps(first: float, limit_of: Callable[[float, int], str | None]) -> list[dict[str, Any]]:
    """limit_of: from the rate and how often it was tried before."""
    tried: list[float] = []

    def measure(rate_per_s: float, processes: int) -> dict[str, Any]:
        limit = limit_of(rate_per_s, tried.count(rate_per_s))
        tried.append(rate_per_s)
        figures = {"kind": "chunks", "processes": processes, "limit": limit, "shared_frac": 0.5}
        return figures | {"asked_per_s": rate_per_s, "per_s": rate_per_s - 1}

    said: list[str] = []
    found = climb(first, measure, 1, said.append)
    assert len(said) == len(found)
    return found


def test_it_steps_up_until_a_step_fails_twice() -> None:
    got = steps(100, lambda rate, _: "error" if rate > 200 else None)
    assert [(step["asked_per_s"], step["limit"]) for step in got] == [
        *((100, None), (150, None), (225, "error"), (225, "error"))
    ]
    assert summit("chunks", got) == {"chunks_per_s": 149, "chunks_limit": "error"}


def test_a_step_that_fails_once_is_a_neighbours_noise() -> None:
    got = steps(
        100, lambda rate, before: "lag" if rate > 200 or (rate == 150 and not before) else None
    )
    assert [step["asked_per_s"] for step in got] == [100, 150, 150, 225, 225]
    assert summit("chunks", got) == {"chunks_per_s": 149, "chunks_limit": "lag"}


def test_it_steps_down_where_the_first_step_fails() -> None:
    got = steps(900, lambda rate, _: "shared" if rate > 450 else None)
    assert [step["asked_per_s"] for step in got] == [900, 900, 600, 400]
    assert summit("chunks", got) == {"chunks_per_s": 399, "chunks_limit": "shared"}


def test_where_nothing_passes_there_is_no_ceiling() -> None:
    got = steps(900, lambda rate, _: "error")
    assert summit("chunks", got) == {"chunks_per_s": 0.0, "chunks_limit": "error"}
    assert len(got) < 20


@pytest.mark.parametrize(
    ("cores", "client", "tried"),
    [
        ({0, 1}, (1, 0), [1, 2]),  # the second shares the emulator's
        ({0, 1, 2}, (1, 2), [1, 2]),
        ({3, 2, 5, 4}, (3, 4, 5), [1, 2]),
        (set(range(8)), (1, 2, 3, 4, 5, 6, 7), [1, 2, 4]),
        (set(range(9)), (1, 2, 3, 4, 5, 6, 7, 8), [1, 2, 4, 8]),
    ],
)
def test_processes_get_cores_that_are_not_the_emulators(
    cores: set[int], client: tuple[int, ...], tried: list[int]
) -> None:
    assert split(cores) == (min(cores), client)
    assert counts(client) == tried


def test_one_core_is_too_few() -> None:
    with pytest.raises(HarnessError, match="needs two cores"):
        split({1})


def recorded(monkeypatch: pytest.MonkeyPatch, **summary: Any) -> None:
    """Steps start nothing and find this summary; the emulator used 0.7 of its core."""

    @contextmanager
    def made(*_: object) -> Iterator[tuple[tuple[()], dict[str, Any], float]]:
        yield (), {"cpu_frac": 0.5} | summary, 0.7

    monkeypatch.setattr(calibrate, "_recorded", made)


MS = 1_000_000
CHUNKS = 1000  # asked for 490/s over 2 s: 1000 in 2.02 s, as the streams' phases spread over a gap


@pytest.mark.parametrize(
    ("errors_ns", "shared", "failed", "seconds", "cpu_frac", "limit"),
    [
        ([50_000] * CHUNKS, 10, 0, 2.0, 0.5, None),  # 1 % may share a read, and no more
        ([50_000] * CHUNKS, 11, 0, 2.0, 0.5, "shared"),
        ([0] * 992 + [-200_000] * 8, 0, 0, 2.0, 0.5, None),  # p99 is within, the worst is not
        ([0] * 980 + [-200_000] * 20, 0, 0, 2.0, 0.5, "error"),  # too early is an error too
        ([200_000] * CHUNKS, 900, 1, 2.0, 0.5, "failed requests"),
        ([50_000] * CHUNKS, 0, 0, 2.5, 0.95, "rate"),
        ([50_000] * CHUNKS, 0, 0, 2.5, 0.5, "emulator"),  # the client had time to spare
    ],
)
def test_what_limits_the_chunks(
    monkeypatch: pytest.MonkeyPatch,
    errors_ns: list[int],
    shared: int,
    failed: int,
    seconds: float,
    cpu_frac: float,
    limit: str | None,
) -> None:
    arrivals_ns = np.linspace(0, seconds * 1e9, CHUNKS)
    recorded(monkeypatch, cpu_frac=cpu_frac)
    found = ([np.array(errors_ns)], [arrivals_ns], shared, failed)
    monkeypatch.setattr(calibrate, "_compare", lambda spools: found)
    step = calibrate._chunk_step(490.0, 1)
    assert (step["limit"], step["per_s"]) == (limit, CHUNKS / seconds)
    assert (step["shared_frac"], step["emulator_core_frac"]) == (shared / CHUNKS, 0.7)


@pytest.mark.parametrize(
    ("lag_ms", "failed", "seconds", "cpu_frac", "limit"),
    [
        (5, 0, 2.0, 0.5, None),
        (6, 0, 2.0, 0.5, "lag"),
        (6, 1, 2.0, 0.5, "failed requests"),
        (5, 0, 2.2, 0.95, "rate"),
        (6, 0, 2.2, 0.5, "emulator"),
    ],
)
def test_what_limits_the_requests(
    monkeypatch: pytest.MonkeyPatch,
    lag_ms: int,
    failed: int,
    seconds: float,
    cpu_frac: float,
    limit: str | None,
) -> None:
    recorded(monkeypatch, cpu_frac=cpu_frac, schedule_lag_p99_ns=lag_ms * MS)
    raws = [
        SimpleNamespace(sent_ns=round(n * seconds * 1e7), error="cut" if n < failed else None)
        for n in range(101)
    ]
    monkeypatch.setattr(calibrate, "_requests", lambda spools: iter(raws))
    step = calibrate._request_step(50.0, 2)
    assert (step["limit"], step["p99_lag_ms"], step["processes"]) == (limit, lag_ms, 2)
    assert step["per_s"] == pytest.approx(100 / seconds)
