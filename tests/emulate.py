"""Starts the emulator for a test, and runs the load process against it."""

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.load.clock import Clock
from harness.load.parse import ParsedRequest, parse_request
from harness.load.plan import LoadPlan, PlannedRequest, save_plan
from harness.load.spool import RawRequest, read_anchors, read_requests


@dataclass(frozen=True, slots=True)
class Run:
    """One finished load process: its summary and its requests by id, raw and parsed."""

    summary: dict[str, Any]
    raw: dict[int, RawRequest]
    parsed: dict[int, ParsedRequest]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running_emulator(**options: Any) -> Iterator[str]:
    """Yields the base URL; options are the emulator's, by name."""
    port = free_port()
    argv = [sys.executable, "-m", "harness.engines.emulator", "--port", str(port)]
    for name, value in options.items():
        argv += ["--" + name.replace("_", "-"), str(value)]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def request_body(**changes: Any) -> str:
    """A streaming request of three prompt tokens and four output tokens, with running usage."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    body = {"model": "emulator", "prompt": [1, 2, 3], "max_tokens": 4}
    return json.dumps({**body, "stream": True, "stream_options": options, **changes})


def run_load(
    folder: Path, url: str, bodies: list[str], warmup: int = 0, **changes: Any
) -> tuple[subprocess.CompletedProcess[str], LoadPlan]:
    """Runs the load process over the bodies, the first `warmup` of them as warm-up."""
    requests = changes.pop("requests", None) or [
        PlannedRequest(number, "warmup" if number <= warmup else "measured", body)
        for number, body in enumerate(bodies, start=1)
    ]
    settings: dict[str, Any] = {
        "url": url,
        "in_flight": 2,
        "min_requests": len(bodies) - warmup,
        "min_duration_s": 0.0,
        "timeout_s": 5.0,
        "cores": (),
        "spool_path": str(folder / "spool"),
    }
    plan = LoadPlan(**{**settings, **changes})
    save_plan(folder / "plan.jsonl", plan, requests)
    argv = [sys.executable, "-m", "harness.load", str(folder / "plan.jsonl")]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60), plan


def load(folder: Path, url: str, bodies: list[str], warmup: int = 0, **changes: Any) -> Run:
    process, plan = run_load(folder, url, bodies, warmup, **changes)
    assert process.returncode == 0, process.stderr
    spool = Path(plan.spool_path)
    clock = Clock(read_anchors(spool))
    raw = {request.request_id: request for request in read_requests(spool)}
    parsed = {number: parse_request(request, clock) for number, request in raw.items()}
    return Run(json.loads(process.stdout.splitlines()[-1]), raw, parsed)
