"""The emulator: an engine whose timing and faults are settable and whose truth is in its stream.

    python -m harness.engines.emulator --port 8000 --ttft-ms 50 --gap-ms 20 --fault none

It speaks the OpenAI streaming API (completions and chat), /health, /v1/models and /metrics, so that
tests and the client's calibration can compare what was recorded with what was so. Every chunk that
carries tokens also carries "emulator_ns": the monotonic time right before the write(2) of the part
that completes it. It writes to the socket itself, because an event loop's transport may hold a
write back until the end of its round. Nothing is computed: tokens are words.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import os
import socket
from dataclasses import fields
from typing import Any

import uvloop

from harness.engines.emulator_stream import FAULTS, Settings, State, Stream
from harness.engines.emulator_truth import accept


class Wire(asyncio.Protocol):
    """One connection: HTTP/1.1 with keep-alive, one request at a time."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.buffer = b""
        self.closed = False
        self.blocked = False  # the socket was full once: from then on the transport writes
        self.stream: Stream | None = None
        self.received_ns = 0  # arrival of the newest read, kept with --keep-truth alone
        self.head = b""  # line and headers of the newest request

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.descriptor = transport.get_extra_info("socket").fileno()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self.stream:
            self.state.leave(self.stream)

    def send(self, data: bytes) -> None:
        written = 0
        if not self.blocked and not self.closed:
            with contextlib.suppress(BlockingIOError, ConnectionError):
                written = os.write(self.descriptor, data)
        if written < len(data):
            self.blocked = True
            self.transport.write(data[written:])

    def close(self) -> None:
        self.closed = True
        self.transport.close()

    def answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        head = f"HTTP/1.1 {status} Emulated\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}"
        self.send(head.encode() + b"\r\n\r\n" + body)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        method, path, *headers = head.decode("latin-1").replace("\r\n", " ", 1).split(" ", 2)
        lengths = [
            int(line.partition(":")[2])
            for line in "".join(headers).split("\r\n")
            if line.lower().startswith("content-length:")
        ]
        size = lengths[0] if lengths else 0
        if len(rest) >= size:
            self.buffer, self.head = rest[size:], head
            self._route(method, path.partition("?")[0], rest[:size])

    def _route(self, method: str, path: str, body: bytes) -> None:
        name = self.state.settings.served_name
        if path == "/health":
            self.answer(200, b"{}")
        elif path == "/v1/models":
            self.answer(200, json.dumps({"data": [{"id": name, "object": "model"}]}).encode())
        elif path == "/metrics":
            self.answer(200, self.state.metrics(), "text/plain; version=0.0.4")
        elif method == "POST" and path == "/reset_cache":
            done = self.state.reset_cache()
            self.answer(200, json.dumps({"success": done}).encode())
        elif path == "/truth" and self.state.truth:
            self.answer(200, self.state.truth.take())
        elif method == "POST" and path in ("/v1/completions", "/v1/chat/completions"):
            self._complete(body, "chat" in path)
        else:
            self.answer(404, b'{"error":{"message":"no such path"}}')

    def _complete(self, body: bytes, chat: bool) -> None:
        self.state.requests += 1
        if self.state.requests == self.state.settings.die_after:
            os._exit(3)
        request = json.loads(body)
        if not request.get("stream"):
            return self.answer(400, b'{"error":{"message":"the emulator only streams"}}')
        try:
            self.stream = Stream(self, self.state, request, chat)
        except ValueError as fault:  # a prompt that is larger than the cache's pool
            refusal = {"error": {"message": str(fault)}}
            return self.answer(400, json.dumps(refusal).encode())
        self.state.admit(self.stream)


async def serve(settings: Settings) -> None:
    """Serves until killed."""
    state = State(settings)
    loop = asyncio.get_running_loop()
    listener = socket.create_server(("127.0.0.1", settings.port), backlog=4096)
    print(f"KV pool: {settings.kv_pool_tokens} tokens", flush=True)
    print(f"listening on http://127.0.0.1:{settings.port}", flush=True)
    gc.collect()
    gc.freeze()
    if state.truth:
        await accept(listener, lambda: Wire(state), loop)
    server = await loop.create_server(lambda: Wire(state), sock=listener, backlog=4096)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description="An engine with known timing and settable faults.")
    for setting in fields(Settings):
        default = setting.default
        parser.add_argument(
            "--" + setting.name.replace("_", "-"),
            type=type(default),
            default=default,
            choices=FAULTS if setting.name == "fault" else None,
        )
    with contextlib.suppress(KeyboardInterrupt):
        try:
            uvloop.run(serve(Settings(**vars(parser.parse_args()))))
        except OSError as fault:
            raise SystemExit(f"the emulator could not start: {fault.strerror}") from None


if __name__ == "__main__":
    main()
