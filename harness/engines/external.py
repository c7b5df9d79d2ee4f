"""A server that runs already: any that speaks the OpenAI API. The harness starts nothing.

`ignore_eos` goes with every request because output lengths must be equal: vLLM, SGLang and
llama.cpp take it; a server that does not know the field either drops it, and cells with short
outputs become INVALID, or refuses it, and says so in the recorded error.
"""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any

from harness.engines.base import Engine, Start
from harness.errors import HarnessError
from harness.workload import words

PROBE_WORDS = 8
ANSWER_TOKENS = 16
TIMEOUT_S = 60.0
RESET_PATIENCE_S = 10.0


class External(Engine):
    name = "external"
    takes_ids = False  # its tokenizer is unknown

    def argv(self, start: Start) -> list[str]:
        raise HarnessError("external: is not started by the harness; pass URL=http://host:port")


def first_model(url: str) -> str:
    """The model that the server lists first. Raises HarnessError where there is no such server."""
    listing = _get_json(f"{url}/v1/models")
    try:
        return str(listing["data"][0]["id"])
    except (KeyError, IndexError, TypeError):
        raise HarnessError(f"{url}/v1/models: lists no model; name one with MODEL=name") from None


def version(url: str) -> str | None:
    """What the server says of its version: at /version (vLLM), else who owns its first model."""
    try:
        return str(_get_json(f"{url}/version")["version"])
    except (HarnessError, KeyError, TypeError):
        pass
    try:
        return _get_json(f"{url}/v1/models")["data"][0].get("owned_by")
    except (HarnessError, KeyError, IndexError, TypeError, AttributeError):
        return None


def added_tokens(engine: Engine, base_url: str, served_name: str, endpoint: str) -> int:
    """Tokens that the server adds to a prompt (begin-of-text, chat template), from one request.

    The words are single tokens in every large byte-level vocabulary; where they are not, the count
    is off and the cells say so by their verdict. Raises HarnessError if the server gives no usage.
    """
    text = "".join(f" {word}" for word in words()[:PROBE_WORDS])
    body = engine.request_body(endpoint, None, text, 1, 0, served_name)
    url = engine.endpoint_url(base_url, endpoint)
    counted = None
    for event in _events(url, body):
        counted = (event.get("usage") or {}).get("prompt_tokens", counted)
    if counted is None:
        raise HarnessError(f"{url}: sends no usage, so prompt lengths can't be checked")
    return max(0, int(counted) - PROBE_WORDS)


def probe_body(engine: Engine, served_name: str, question: str) -> dict[str, Any]:
    """The request of the probe: a question, answered greedily in a few tokens."""
    body = engine.request_body("chat", None, question, ANSWER_TOKENS, 0, served_name)
    return body | dict(engine.no_thinking)


def answer(engine: Engine, base_url: str, served_name: str, question: str) -> str:
    """The engine's greedy answer to a question, as chat, cut after a few tokens."""
    body = probe_body(engine, served_name, question)
    url = engine.endpoint_url(base_url, "chat")
    choices = (choice for event in _events(url, body) for choice in event.get("choices") or [])
    return "".join((choice.get("delta") or {}).get("content") or "" for choice in choices)


def reset_cache(engine: Engine, base_url: str) -> None:
    """Empties the prefix cache. Both vLLM and SGLang refuse while a request holds a part of it, and
    one that has just been answered may: so it is tried again for a few seconds.

    Raises HarnessError naming the engine where it can't be done or is still refused after that.
    """
    url = cache_reset_url(engine, base_url)
    patience_s = time.monotonic() + RESET_PATIENCE_S
    while said := _refusal(url):
        if time.monotonic() > patience_s:
            raise HarnessError(f"{engine.name}: did not empty its prefix cache: {said}")
        time.sleep(0.2)


def cache_reset_url(engine: Engine, base_url: str) -> str:
    """Where the prefix cache is emptied. Raises HarnessError where the engine has no such thing."""
    url = engine.reset_url(base_url)
    if url is None:
        raise HarnessError(
            f"{engine.name}: has nothing that empties its prefix cache; limit the sweep with "
            "reset_cache by engines = [...] to engines that have"
        )
    return url


def _refusal(url: str) -> str:
    """What the engine said against it, "" if it did it: by its status and, where the answer is
    JSON, by its "success"."""
    try:
        said = _read(url, b"").decode(errors="replace")
    except HarnessError as error:
        return str(error)
    try:
        return "" if json.loads(said)["success"] is True else f"{url}: answered {said}"
    except ValueError:
        return ""  # SGLang answers in words
    except (KeyError, TypeError):
        return f"{url}: answered {said}"


def _events(url: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of one small streamed answer, read as a whole: nothing is timed here."""
    for line in _read(url, json.dumps(body).encode()).splitlines():
        if line.startswith(b"data:") and line[5:].strip() != b"[DONE]":
            try:
                yield json.loads(line[5:])
            except ValueError:
                raise HarnessError(f"{url}: sent an event that is no JSON: {line[:80]!r}") from None


def server_url(given: str) -> str:
    """http(s)://host[:port] out of what the user gave; a path such as /v1 is left off.

    Raises HarnessError where it is no such address, or holds a password.
    """
    try:
        parts = urllib.parse.urlsplit(given)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise HarnessError("URL: not an address such as http://127.0.0.1:8000")
    if "@" in parts.netloc:
        raise HarnessError("URL: holds a name or password; pass a key as OPENAI_API_KEY instead")
    return f"{parts.scheme}://{parts.netloc}"


def _get_json(url: str) -> Any:
    try:
        return json.loads(_read(url))
    except ValueError:
        raise HarnessError(f"{url}: did not answer with JSON") from None


def _read(url: str, body: bytes | None = None) -> bytes:
    status, data = exchange(url, body, TIMEOUT_S)
    if status >= 400:
        detail = data[:300].decode(errors="replace")
        raise HarnessError(f"{url}: answered {status}: {detail}")
    return data


def exchange(url: str, body: bytes | None, timeout_s: float) -> tuple[int, bytes]:
    """Status and whole answer of one request, whatever the status. Raises HarnessError where none
    comes."""
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("OPENAI_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    # No proxy: the load goes to the server itself, so what is asked before it must, too.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        answer: Any
        try:
            answer = opener.open(urllib.request.Request(url, body, headers), timeout=timeout_s)
        except urllib.error.HTTPError as refusal:
            answer = refusal
        with answer:
            return int(answer.status), bytes(answer.read())
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", None) or repr(error)
        raise HarnessError(
            f"{url}: can't be reached ({reason}); is the server running, and is the URL right?"
        ) from None
