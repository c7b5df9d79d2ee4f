"""Each real engine: started, asked once, stopped. Run by `make test-engines`; minutes each.

It sets up what is missing, so the first run takes as long as the first `make record`.
"""

import http.client
import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from harness.engines import environments, external, get, models
from harness.engines.base import CPU_POOL_TOKENS
from harness.engines.process import RunningEngine
from harness.workload import prompts, word_ids

ROOT = Path(__file__).parents[2]
PATH = "/v1/completions"
pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]


def stream(port: int, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 200, text
    lines = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.parametrize("name", ["transformers", "vllm", "sglang"])
def test_an_engine_does_the_work_it_is_asked_for(name: str) -> None:
    engine = get(name)
    environments.ensure(engine, "cpu", ROOT)
    model = models.ensure_model(models.PACKAGED, ROOT)
    assert model.tokenizer_path is not None
    tokenizer = Tokenizer.from_file(str(model.tokenizer_path))
    prompt = next(prompts(1, 1, 0, 32, word_ids(model.tokenizer_path)))
    assert prompt.ids is not None
    assert tokenizer.encode(prompt.text, add_special_tokens=False).ids == list(prompt.ids)

    pool: list[int] = []
    launch = engine.launch(model.path, model.served_name, 0, "cpu", 2048, (), ROOT)
    running = RunningEngine(
        engine,
        launch,
        (0,),
        lambda t_ns, line: pool.extend(filter(None, [engine.kv_pool_tokens(line)])),
        ROOT,
    )
    try:
        running.start()
        running.wait_ready()
        ask = (prompt.ids, prompt.text, 8, 0, model.served_name)
        events = stream(launch.port, PATH, engine.request_body("completions", *ask))
        usage = [event["usage"] for event in events if event.get("usage")][-1]
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (32, 8)
        likely = engine.request_body("completions", *ask, logprobs=2)
        scored = [e["choices"][0] for e in stream(launch.port, PATH, likely) if e.get("choices")]
        if engine.gives_logprobs:
            told = [choice["logprobs"] for choice in scored if choice.get("logprobs")]
            tokens = [token for each in told for token in each["tokens"]]
            assert len(tokens) == 8
            assert "".join(tokens) == "".join(choice["text"] for choice in scored)
            assert all(len(top) >= 2 for each in told for top in each["top_logprobs"])
        assert external.added_tokens(engine, running.base_url, model.served_name, "chat") == 30
        question = (None, "What is the capital of France?", 8, 0, model.served_name)
        events = stream(launch.port, "/v1/chat/completions", engine.request_body("chat", *question))
        choices = [event["choices"][0] for event in events if event.get("choices")]
        text = "".join(choice["delta"].get("content") or "" for choice in choices)
        assert "Paris" in text
        if name != "transformers":
            assert pool[-1] == CPU_POOL_TOKENS

            def cached(salt: str = "") -> int:
                ask = (range(1000, 1300), "", 1, 0, model.served_name)
                body = engine.request_body("completions", *ask, salt=salt)
                usage = [e["usage"] for e in stream(launch.port, PATH, body) if e.get("usage")][-1]
                return (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0

            whole = {"vllm": 256, "sglang": 299}[name]  # blocks of 128, and pages of 1
            assert [cached(), cached(), cached("red"), cached()] == [0, whole, 0, whole]
            external.reset_cache(engine, running.base_url)
            assert cached() == 0
        pids = running.pids()
    finally:
        running.stop()
    assert pids and running.pids() == []
