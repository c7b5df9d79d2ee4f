from collections.abc import Callable
from typing import Any

from harness.calibrate import climb, summit


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
