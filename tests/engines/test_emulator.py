import json
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness.engines import get as get_engine
from harness.engines.external import reset_cache
from tests.emulate import request_body, running_emulator


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode()


def post(url: str, body: str) -> list[Any]:
    """The events of one answer; [DONE] as it is."""
    with urllib.request.urlopen(url, data=body.encode(), timeout=10) as answer:
        events = answer.read().decode().split("\n\n")
    texts = [event.removeprefix("data: ") for event in events if event]
    return [text if text == "[DONE]" else json.loads(text) for text in texts]


def metric(url: str, name: str) -> float:
    lines = [line for line in get(url + "/metrics").splitlines() if f"emulator:{name}{{" in line]
    return float(lines[0].rpartition(" ")[2])


def test_completions_stream_with_running_usage_and_a_total() -> None:
    with running_emulator(ttft_ms=1, gap_ms=1, tokens_per_chunk=2, cached_tokens=9) as url:
        events = post(url + "/v1/completions", request_body(max_tokens=5))
    assert events[-1] == "[DONE]"
    assert [e["choices"][0]["text"] for e in events[:3]] == [" token" * 2, " token" * 2, " token"]
    assert [e["usage"]["completion_tokens"] for e in events[:4]] == [2, 4, 5, 5]
    assert [e["choices"][0]["finish_reason"] for e in events[:3]] == [None, None, "length"]
    assert events[3]["choices"] == []
    assert events[3]["usage"]["prompt_tokens"] == 3
    assert events[3]["usage"]["prompt_tokens_details"] == {"cached_tokens": 2}
    times = [event["emulator_ns"] for event in events[:3]]
    assert times == sorted(times)


def test_chat_begins_with_the_role_and_usage_comes_only_if_asked_for() -> None:
    messages = [{"role": "user", "content": "one two"}, {"role": "user", "content": "three"}]
    body = request_body(messages=messages, prompt=None, stream_options={}, max_tokens=1)
    with running_emulator(ttft_ms=1) as url:
        role, token, end = post(url + "/v1/chat/completions", body)
        assert metric(url, "prompt_tokens_total") == 3
        assert metric(url, "generation_tokens_total") == 1
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert token["choices"][0]["delta"] == {"content": " token"}
    assert "usage" not in token
    assert end == "[DONE]"


def test_chunks_have_absolute_deadlines_and_prefill_costs_by_the_token() -> None:
    # 10 ms + 50 tokens of 1,000 us; then 20 gaps of 5 ms. Timers are 1 ms wide and a busy machine
    # makes single chunks late, so the smallest of several values is held against the setting.
    first_ns, growth_ns = [], []
    with running_emulator(ttft_ms=10, ttft_per_token_us=1000, gap_ms=5) as url:
        for _ in range(4):
            before = time.monotonic_ns()
            events = post(url + "/v1/completions", request_body(prompt=[1] * 50, max_tokens=21))
            late = [event["emulator_ns"] - i * 5_000_000 for i, event in enumerate(events[:21])]
            first_ns.append(late[0] - before)
            growth_ns.append(min(late[11:]) - min(late[:10]))
    assert 58e6 <= min(first_ns) < 90e6
    assert -3e6 < min(growth_ns) < 3e6


def test_requests_beyond_the_limit_wait() -> None:
    with (
        running_emulator(ttft_ms=300, gap_ms=1, max_running=2) as url,
        ThreadPoolExecutor() as pool,
    ):
        answers = [
            pool.submit(post, url + "/v1/completions", request_body(max_tokens=1)) for _ in range(3)
        ]
        deadline = time.monotonic() + 5
        while metric(url, "num_requests_waiting") < 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert metric(url, "num_requests_running") == 2
        assert metric(url, "kv_cache_usage_perc") == 6 / 100_000
        first = sorted(answer.result()[0]["emulator_ns"] for answer in answers)
        assert first[2] - first[0] > 250_000_000
        assert metric(url, "num_requests_running") == 0


def test_a_real_cache_of_blocks_with_salts_adapters_and_a_reset() -> None:
    options = {"cache_block": 4, "kv_pool_tokens": 16, "served_name": "emulator"}
    with running_emulator(ttft_ms=1, gap_ms=1, **options) as url:

        def cached(first: int, **changes: Any) -> int:
            prompt = list(range(first, first + 9))
            body = request_body(prompt=prompt, max_tokens=1, **changes)
            last = post(url + "/v1/completions", body)[-2]
            return last["usage"]["prompt_tokens_details"]["cached_tokens"]

        assert [cached(0), cached(0), cached(0, cache_salt="red"), cached(0, model="a")] == [
            0,
            8,
            0,
            0,
        ]
        reset_cache(get_engine("emulator"), url)
        assert [cached(0), cached(0)] == [0, 8]
        assert [cached(100), cached(200), cached(0)] == [0, 0, 0]  # two blocks each, of four
        assert metric(url, "prefix_cache_hits_total") == 16
        with pytest.raises(urllib.error.HTTPError) as refusal:
            post(url + "/v1/completions", request_body(prompt=list(range(17))))
        assert refusal.value.code == 400
        assert b"17 tokens do not fit into 4 blocks" in refusal.value.read()
        assert cached(0) == 8  # and it goes on


def test_health_models_and_refusals() -> None:
    with running_emulator(served_name="tiny") as url:
        assert get(url + "/health") == "{}"
        assert json.loads(get(url + "/v1/models"))["data"][0]["id"] == "tiny"
        for path, body in (("/nowhere", "{}"), ("/v1/completions", '{"stream": false}')):
            with pytest.raises(urllib.error.HTTPError) as refusal:
                post(url + path, body)
            assert refusal.value.code in (400, 404)
