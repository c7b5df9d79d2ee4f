"""What each tool wrote about its run -> the same few facts about every request.

Times in ns, all as the tool recorded them. A request is named by the number with which the emulator
starts its answer (emulator_truth.py), or by the X-Request-ID that the tool sent.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.load.clock import Clock
from harness.load.parse import parse_request
from harness.load.spool import read_anchors, read_requests

_NUMBER = re.compile(r"\s*e(\d+)")
# What half a file, a missing key or an empty list raises.
NOT_A_REPORT = (AttributeError, IndexError, KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Seen:
    """One request. key: its number or X-Request-ID, "" where it can't be told. ok: the tool counts
    it as a success. gaps_ns: between chunks; None where the tool doesn't keep them, and then
    span_ns alone is known: from the first chunk to the last."""

    key: str
    ok: bool
    ttft_ns: int | None = None
    gaps_ns: tuple[int, ...] | None = None
    span_ns: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A run. token_gap_ms: the mean time between tokens that the tool reports (its "ITL")."""

    seen: list[Seen]
    token_gap_ms: float | None


def number(text: str | None) -> str:
    """The emulator's number at the start of an answer, "" without one."""
    found = _NUMBER.match(text or "")
    return found[1] if found else ""


@contextmanager
def _reading(path: Path) -> Iterator[Path]:
    """While a file that a tool left is read. Raises HarnessError naming it where it is missing, or
    where what is read from it isn't there."""
    try:
        yield path
    except OSError:
        raise HarnessError(f"left no {path.name}") from None
    except NOT_A_REPORT as error:
        raise HarnessError(f"{path.name} can't be read: {type(error).__name__}: {error}") from error


def read_recorder(folder: Path) -> Report:
    """The recorder's own spool."""
    seen, span_ns, gaps = [], 0, 0
    with _reading(folder / "spool") as spool:
        clock = Clock(read_anchors(spool))
        for raw in read_requests(spool):
            parsed = parse_request(raw, clock)
            times = parsed.chunk_offset_ns
            seen.append(
                Seen(
                    number(parsed.output_text),
                    not parsed.error,
                    times[0] if times else None,
                    tuple(after - before for before, after in pairwise(times)),
                    times[-1] - times[0] if times else None,
                    parsed.output_tokens,
                )
            )
            if times and not parsed.error:
                span_ns += times[-1] - times[0]
                gaps += (parsed.output_tokens or 1) - 1
    return Report(seen, span_ns / gaps / 1e6 if gaps else None)


def read_vllm(folder: Path) -> Report:
    """vllm bench serve --save-detailed."""
    with _reading(folder / "result.json") as path:
        found = _json(path)
        return Report(list(_listed(found)), found["mean_itl_ms"])


def read_sglang(folder: Path) -> Report:
    """sglang.bench_serving --output-details: one JSON line a run."""
    with _reading(folder / "result.jsonl") as path:
        found = _json_lines(path)[-1]
        return Report(list(_listed(found)), found["mean_itl_ms"])


def _listed(found: dict[str, Any]) -> Iterator[Seen]:
    """The per-request lists that vLLM and SGLang share."""
    names = ("generated_texts", "errors", "ttfts", "itls", "output_lens")
    for text, error, ttft_s, itls_s, tokens in zip(*(found[name] for name in names), strict=True):
        gaps_ns = tuple(_ns(gap_s) for gap_s in itls_s)
        yield Seen(number(text), not error, _ns(ttft_s) or None, gaps_ns, sum(gaps_ns), int(tokens))


def read_guidellm(folder: Path) -> Report:
    """guidellm run --output kind=json: first and last token of each request, none between."""
    with _reading(folder / "result.json") as path:
        (found,) = _json(path)["benchmarks"]
        seen = [
            _guidellm_request(request, kind == "successful")
            for kind in ("successful", "errored", "incomplete")
            for request in found["requests"][kind]
        ]
        return Report(seen, found["metrics"]["inter_token_latency_ms"]["successful"]["mean"])


def _guidellm_request(request: dict[str, Any], ok: bool) -> Seen:
    times = request["info"]["timings"]
    first, last = times["first_token_iteration"], times["last_token_iteration"]
    return Seen(
        number(request["response_id"]),
        ok,
        _ns(first - times["request_start"]) if first else None,
        None,
        _ns(last - first) if first and last else None,
        request["output_metrics"]["total_tokens"],
    )


def read_aiperf(folder: Path) -> Report:
    """aiperf profile --export-level records: times to the chunk, and the X-Request-ID it sent."""
    with _reading(folder / "profile_export.jsonl") as path:
        seen = [_aiperf_request(record) for record in _json_lines(path)]
    with _reading(folder / "profile_export_aiperf.json") as path:
        return Report(seen, (_json(path).get("inter_token_latency") or {}).get("avg"))


def _aiperf_request(record: dict[str, Any]) -> Seen:
    values = {name: metric["value"] for name, metric in (record["metrics"] or {}).items()}
    ttft_ms = values.get("time_to_first_token")
    gaps_ns = tuple(round(gap_ms * 1e6) for gap_ms in values.get("inter_chunk_latency") or ())
    return Seen(
        record["metadata"]["x_request_id"],
        not record.get("error"),
        round(ttft_ms * 1e6) if ttft_ms else None,
        gaps_ns,
        sum(gaps_ns),
        values.get("usage_completion_tokens", values.get("output_sequence_length")),
    )


def read_inference_perf(folder: Path) -> Report:
    """inference-perf's per-request report: the time of each chunk that carries text."""
    with _reading(folder / "per_request_lifecycle_metrics.json") as path:
        seen = [_inference_perf_request(request) for request in _json(path)]
    with _reading(folder / "summary_lifecycle_metrics.json") as path:
        latency = _json(path)["successes"]["latency"]
        gap_s = (latency.get("inter_token_latency") or {}).get("mean")
        return Report(seen, gap_s * 1000 if gap_s is not None else None)


def _inference_perf_request(request: dict[str, Any]) -> Seen:
    metrics = request["info"].get("response_metrics") or {}
    times = [_ns(time_s) for time_s in metrics.get("chunk_times") or ()]
    chunks = metrics.get("response_chunks") or ()
    usage = metrics.get("server_usage") or {}
    return Seen(
        number(json.loads(chunks[0])["id"]) if chunks else "",
        not request["error"],
        times[0] - _ns(request["start_time"]) if times else None,
        tuple(after - before for before, after in pairwise(times)),
        times[-1] - times[0] if times else None,
        usage.get("completion_tokens", metrics.get("output_tokens")),
    )


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _json_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
