"""A server that runs already, played by a few lines of http.server."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from harness.engines import external, get
from harness.engines.ports import free_port
from harness.errors import HarnessError


@pytest.fixture
def server() -> Iterator[tuple[str, dict[str, bytes]]]:
    """(URL, answers by path); the test fills in the answers."""
    answers: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(answers.get(self.path, b"nothing here"))

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}", answers
    http.shutdown()
    http.server_close()


def test_the_first_model_and_the_version(server: tuple[str, dict[str, bytes]]) -> None:
    url, answers = server
    answers["/v1/models"] = b'{"data": [{"id": "a", "owned_by": "llamacpp"}, {"id": "b"}]}'
    assert external.first_model(url) == "a"
    assert external.version(url) == "llamacpp"
    answers["/version"] = b'{"version": "0.32.0"}'
    assert external.version(url) == "0.32.0"


def test_errors_name_the_url(server: tuple[str, dict[str, bytes]]) -> None:
    url, answers = server
    with pytest.raises(HarnessError, match="/v1/models: answered 404: nothing here"):
        external.first_model(url)
    answers["/v1/models"] = b'{"data": []}'
    with pytest.raises(HarnessError, match="lists no model; name one with MODEL=name"):
        external.first_model(url)
    answers["/v1/models"] = b"<html>"
    with pytest.raises(HarnessError, match="did not answer with JSON"):
        external.first_model(url)
    nobody = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(HarnessError, match=r"can't be reached .*is the server running"):
        external.first_model(nobody)
    assert external.version(nobody) is None


@pytest.mark.parametrize(("counted", "added"), [(8, 0), (9, 1), (38, 30)])
def test_tokens_that_the_server_adds(
    server: tuple[str, dict[str, bytes]], counted: int, added: int
) -> None:
    url, answers = server
    usage = json.dumps({"choices": [], "usage": {"prompt_tokens": counted}})
    answers["/v1/completions"] = (
        f'data: {{"choices": []}}\n\ndata: {usage}\n\ndata: [DONE]\n\n'.encode()
    )
    assert external.added_tokens(get("external"), url, "a", "completions") == added


def test_a_server_without_usage_is_refused(server: tuple[str, dict[str, bytes]]) -> None:
    url, answers = server
    answers["/v1/completions"] = b'data: {"choices": []}\n\n'
    with pytest.raises(HarnessError, match="sends no usage"):
        external.added_tokens(get("external"), url, "a", "completions")


def test_emptying_the_cache_checks_the_answer(
    server: tuple[str, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external, "RESET_PATIENCE_S", 0.0)
    url, answers = server
    answers["/reset_prefix_cache"] = b'{"success":true}'
    external.reset_cache(get("vllm"), url)
    answers["/flush_cache"] = b"Cache flushed."
    external.reset_cache(get("sglang"), url)
    for said in (b'{"success":false}', b"{}", b"[]"):
        answers["/reset_prefix_cache"] = said
        with pytest.raises(HarnessError, match=r"vllm: did not empty its prefix cache: .*answered"):
            external.reset_cache(get("vllm"), url)
    del answers["/flush_cache"]
    with pytest.raises(HarnessError, match=r"sglang: did not empty .*answered 404: nothing here"):
        external.reset_cache(get("sglang"), url)
    with pytest.raises(HarnessError, match="transformers: has nothing that empties"):
        external.reset_cache(get("transformers"), url)
