"""The emulator's answers: when each chunk is due, what is in it, and which fault it has.

emulator.py serves them. Each chunk has an absolute deadline, so lateness never adds up; the event
loop's timers have a resolution of 1 ms.
"""

import asyncio
import contextlib
import json
import random
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.engines.emulator_truth import Keeper
from harness.prefix_cache import BlockCache

if TYPE_CHECKING:
    from harness.engines.emulator import Wire

FAULTS = (
    "none",
    "empty",  # status 200, no token
    "http_429",
    "http_500",
    "half_json",  # half an event, then a proper end
    "error_event",  # an error object half-way through the stream
    "close",  # the connection closes half-way through the stream
    "two_events",  # two chunks in one write
    "split_char",  # a chunk in two writes 2 ms apart, cut inside a UTF-8 character
    "role_delay",  # the role chunk at once, the first token after the time to first token
    "no_usage",
    "no_finish",
    "short",  # half of the tokens asked for
    "slow",  # never answers
    "late",  # the first token is later by late_ms
    "wrong_prompt",  # usage says 7 prompt tokens more
    "held_back",  # no running usage, and the text of every odd chunk comes with the next one
    "hidden_cache",  # cached tokens are in the engine's counters and in no usage
    "hidden_queue",  # waiting requests are in no gauge
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Command-line options, by name. phase_ms: each request's first token is late by a random
    part of it, so that streams don't tick together. fault_every: every n-th request has the fault.
    die_after: the process exits on the n-th request; 0: never. max_running: requests beyond it
    wait; 0: no limit. front_ms: a request is held so long before the engine counts it. The first
    token of a request is later by cold_ms if it is one of the first cold_requests, by late_ms if
    it has that fault, and by slower_ms for each request before it. reasoning_tokens: of a chat
    answer, the first so many are reasoning. cached_tokens: what usage says; cache_block: tokens a
    block of a real prefix cache of kv_pool_tokens, which saves prefill; 0: none."""

    port: int = 8000
    ttft_ms: float = 50.0
    ttft_per_token_us: float = 0.0
    gap_ms: float = 20.0
    jitter_ms: float = 0.0
    phase_ms: float = 0.0
    tokens_per_chunk: int = 1
    cached_tokens: int = 0
    cache_block: int = 0
    reasoning_tokens: int = 0
    front_ms: float = 0.0
    cold_ms: float = 0.0
    cold_requests: int = 1
    late_ms: float = 0.0
    slower_ms: float = 0.0
    max_running: int = 0
    kv_pool_tokens: int = 100_000
    seed: int = 1
    fault: str = "none"
    fault_every: int = 1
    die_after: int = 0
    served_name: str = "emulator"
    keep_truth: int = 0  # 1: see emulator_truth.py


class State:
    """What all connections share; the source of /metrics."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.requests = 0
        self.truth = Keeper() if settings.keep_truth else None
        self.running: set[Stream] = set()
        self.waiting: deque[Stream] = deque()
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.hit_tokens = 0
        self.stage_s = {"queue": 0.0, "prefill": 0.0}
        self.prefills = 0
        self.reset_cache()

    def admit(self, stream: "Stream") -> None:
        if self.settings.front_ms:
            later = asyncio.get_running_loop().call_later
            later(self.settings.front_ms / 1000, self._enter, stream)
        else:
            self._enter(stream)

    def _enter(self, stream: "Stream") -> None:
        if not stream.wire.closed:
            stream.entered_s = time.monotonic()
            self.waiting.append(stream)
            self._start_waiting()

    def reset_cache(self) -> bool:
        """Empties the cache; False, with nothing done, while a request runs."""
        if self.running:
            return False
        block = self.settings.cache_block
        self._cache = BlockCache(block, self.settings.kv_pool_tokens // block) if block else None
        return True

    def cached(self, prompt: list[Any], body: dict[str, Any]) -> int:
        """Leading tokens of the prompt that are in the cache; then all of it is.

        Salt and model, which an adapter has of its own, are part of what a block is known by.
        """
        if self._cache is None:
            return max(0, min(self.settings.cached_tokens, len(prompt) - 1))
        return self._cache.serve(prompt, (body.get("cache_salt"), body.get("model")))

    def leave(self, stream: "Stream") -> None:
        self.running.discard(stream)
        with contextlib.suppress(ValueError):
            self.waiting.remove(stream)
        self._start_waiting()

    def _start_waiting(self) -> None:
        limit = self.settings.max_running or len(self.running) + len(self.waiting)
        while self.waiting and len(self.running) < limit:
            stream = self.waiting.popleft()
            self.running.add(stream)
            stream.begin()

    def metrics(self) -> bytes:
        kv_tokens = sum(stream.prompt_tokens + stream.sent for stream in self.running)
        hides_queue = self.settings.fault == "hidden_queue"
        values: dict[str, tuple[str, float]] = {
            "num_requests_running": ("gauge", len(self.running)),
            "num_requests_waiting": ("gauge", 0 if hides_queue else len(self.waiting)),
            "kv_cache_usage_perc": ("gauge", kv_tokens / self.settings.kv_pool_tokens),
            "prompt_tokens_total": ("counter", self.prompt_tokens),
            "generation_tokens_total": ("counter", self.generation_tokens),
            "prefix_cache_hits_total": ("counter", self.hit_tokens),
        }
        for stage, seconds in self.stage_s.items():
            values[f"request_{stage}_time_seconds_sum"] = ("untyped", seconds)
            values[f"request_{stage}_time_seconds_count"] = ("untyped", self.prefills)
        lines = [
            f"# TYPE emulator:{name} {kind}\n"
            f'emulator:{name}{{model_name="{self.settings.served_name}"}} {value}\n'
            for name, (kind, value) in values.items()
        ]
        return "".join(lines).encode()


class Stream:
    """One streamed answer."""

    def __init__(self, wire: "Wire", state: State, body: dict[str, Any], chat: bool) -> None:
        self.wire, self.state, self.chat = wire, state, chat
        s = self.settings = state.settings
        options = body.get("stream_options") or {}
        prompt = _prompt(body)
        self.prompt_tokens, self.cached_tokens = len(prompt), state.cached(prompt, body)
        self.left = int(body.get("max_tokens") or body.get("max_completion_tokens") or 16)
        self.sent = 0
        self.chunks = 0
        self.fault = s.fault if state.requests % s.fault_every == 0 else "none"
        if self.fault == "short":
            self.left = max(1, self.left // 2)
        self.usage = options.get("include_usage") and self.fault != "no_usage"
        runs = self.usage and options.get("continuous_usage_stats")
        self.running_usage = runs and self.fault != "held_back"
        self.half = self.left // 2
        self.random = random.Random(s.seed * 1_000_003 + state.requests)
        kind = "chat.completion.chunk" if chat else "text_completion"
        self.head = f'{{"id":"e{state.requests}","object":"{kind}","model":"{s.served_name}"'
        self.number = state.requests
        self.held = ""
        self.entered_s = self.begun_s = self.first_s = 0.0
        truth = state.truth
        self.truth = truth.add(self.number, wire.received_ns, wire.head) if truth else None
        is_plain = s.tokens_per_chunk == 1 and not (s.reasoning_tokens and chat)
        self.is_plain = is_plain and self.fault == "none" and not self.running_usage
        self.template = b""  # of a plain answer's chunks between its first and its last

    def begin(self) -> None:
        s = self.settings
        computed = self.prompt_tokens - (self.cached_tokens if s.cache_block else 0)
        delay_ms = s.ttft_ms + s.ttft_per_token_us * computed / 1000
        delay_ms += s.slower_ms * (self.number - 1) + s.cold_ms * (self.number <= s.cold_requests)
        delay_ms += s.late_ms * (self.fault == "late")
        self.begun_s = time.monotonic()
        self.first_s = self.begun_s + (delay_ms + self.random.random() * s.phase_ms) / 1000
        self.state.prompt_tokens += self.prompt_tokens
        self.state.hit_tokens += self.cached_tokens
        if self.fault == "role_delay":
            self._open()
        if self.fault != "slow":
            self._schedule()

    def _schedule(self) -> None:
        jitter_ms = self.settings.jitter_ms * (self.random.random() - 0.5)
        due_s = self.first_s + (self.chunks * self.settings.gap_ms + jitter_ms) / 1000
        asyncio.get_running_loop().call_later(max(0.0, due_s - time.monotonic()), self._tick)

    def _tick(self) -> None:
        if self.wire.closed:
            return
        if self.chunks == 0:
            self.state.prefills += 1
            self.state.stage_s["queue"] += self.begun_s - self.entered_s
            self.state.stage_s["prefill"] += time.monotonic() - self.begun_s
            if self.fault.startswith("http_"):
                return self._refuse(int(self.fault[5:]))
            if self.fault != "role_delay":
                self._open()
        if self.fault == "empty":
            return self._finish()
        if self.sent >= self.half and self.fault in ("close", "half_json", "error_event"):
            return self._break_off()
        self._send_tokens()
        if self.left:
            self._schedule()
        else:
            self._finish()

    def _open(self) -> None:
        self.wire.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        if self.chat:
            role = '[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]'
            self.wire.send(_frame(f'data: {self.head},"choices":{role}}}\n\n'.encode()))

    def _send_tokens(self) -> None:
        if self.template and self.left > 1:
            self._count(1)
            return self.wire.send(self.template % self._now())
        first = self._event()
        if self.is_plain:  # rendered once: a third of what a chunk costs otherwise
            blank = b" " * 19  # a time is filled up to this length, so that all frames are alike
            event = self._render(" token", "null").replace(b"%d", blank)
            self.template = _frame(event).replace(blank, b"%-19d")
        if self.fault == "two_events" and self.left:
            second = self._event()
            now_ns = self._now()
            self.wire.send(_frame(first % now_ns) + _frame(second % self._now(now_ns)))
        elif self.fault == "split_char":
            at = first.index(b"\xc3") + 1
            self.wire.send(_frame(first[:at]))
            time.sleep(0.002)  # the rest of the server waits: only tests ask for this fault
            self.wire.send(_frame(first[at:] % self._now()))
        else:
            self.wire.send(_frame(first % self._now()))

    def _now(self, now_ns: int = 0) -> int:
        """The time of the write that comes next."""
        now_ns = now_ns or time.monotonic_ns()
        if self.truth:
            self.truth.write_ns.append(now_ns)
        return now_ns

    def _count(self, tokens: int) -> None:
        self.left -= tokens
        self.sent += tokens
        self.chunks += 1
        self.state.generation_tokens += tokens

    def _event(self) -> bytes:
        """The next chunk, with a %d where its time goes."""
        count = min(self.settings.tokens_per_chunk, self.left)
        word = " pi\u00f1a" if self.fault == "split_char" else " token"
        text = word * count
        if self.truth and not self.chunks:
            text = f" e{self.number}" + word * (count - 1)
        self._count(count)
        if self.fault == "held_back":
            text, self.held = (
                ("", text) if self.chunks % 2 and self.left else (self.held + text, "")
            )
        return self._render(text, "null" if self.left or self.fault == "no_finish" else '"length"')

    def _render(self, text: str, finish: str) -> bytes:
        kind = "reasoning_content" if self.sent <= self.settings.reasoning_tokens else "content"
        part = f'"delta":{{"{kind}":"{text}"}}' if self.chat else f'"text":"{text}"'
        usage = f',"usage":{json.dumps(self._usage())}' if self.running_usage else ""
        return (
            f'data: {self.head},"choices":[{{"index":0,{part},"finish_reason":{finish}}}]{usage}'
            ',"emulator_ns":%d}\n\n'
        ).encode()

    def _usage(self) -> dict[str, Any]:
        prompt = self.prompt_tokens + (7 if self.fault == "wrong_prompt" else 0)
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": self.sent,
            "total_tokens": prompt + self.sent,
        }
        if self.fault == "hidden_cache":
            return usage
        return usage | {"prompt_tokens_details": {"cached_tokens": self.cached_tokens}}

    def _finish(self) -> None:
        usage = ""
        if self.usage:
            usage = f'data: {self.head},"choices":[],"usage":{json.dumps(self._usage())}}}\n\n'
        self.wire.send(_frame(f"{usage}data: [DONE]\n\n".encode()) + b"0\r\n\r\n")
        self.state.leave(self)

    def _break_off(self) -> None:
        last = {
            "half_json": f'data: {self.head},"cho',
            "error_event": 'data: {"error":{"message":"out of memory","code":500}}\n\n',
        }
        if self.fault == "close":
            self.wire.close()
        else:
            self.wire.send(_frame(last[self.fault].encode()) + b"0\r\n\r\n")
        self.state.leave(self)

    def _refuse(self, status: int) -> None:
        body = {"error": {"message": f"emulated fault {status}", "code": status}}
        self.wire.answer(status, json.dumps(body).encode())
        self.state.leave(self)


def _frame(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


def _prompt(body: dict[str, Any]) -> list[Any]:
    """Tokens of a prompt: its ids where ids were sent, else its words."""
    prompt = body.get("prompt")
    if isinstance(prompt, list):
        return prompt
    texts = [prompt or ""]
    for message in body.get("messages", []):
        content = message.get("content") or ""
        parts = [{"text": content}] if isinstance(content, str) else content
        texts += [part.get("text") or "" for part in parts]
    return [word for text in texts for word in text.split()]
