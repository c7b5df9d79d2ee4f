"""How true is a recorded chunk time? Measured against the emulator, which says when it wrote.

    python -m harness.bench [--readme FILE] [--write FILE]     (part of make bench)

Why: the kernel's receive stamp is what lets a small Python client be exact; here it is held against
the emulator's own time of each write, beside the stamp that user space would have taken of the very
same reads. The emulator runs on core 0, the load process on core 1, each stream at a phase of its
own. Error: recorded arrival minus the emulator's time before its write(2), so it contains the write
itself. Every chunk counts, those that shared a read too. The last line is one JSON object;
--readme puts the medians into the table between the bench marks of a Markdown file.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from harness.errors import HarnessError
from harness.load.clock import Clock
from harness.load.parse import parse_request
from harness.load.plan import LoadPlan, PlannedRequest, save_plan
from harness.load.spool import read_anchors, read_requests
from harness.peers.drive import emulator
from harness.peers.tools import CLIENT_CORE

GAP_MS = 20  # 50 chunks/s a stream
GOAL_P99_MS = 0.1
TRUTH = re.compile(rb'"emulator_ns":(\d+)')


def main() -> None:
    parser = argparse.ArgumentParser(description="Error of recorded chunk times, measured.")
    parser.add_argument("--streams", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", type=Path, help="also write the JSON to this file")
    parser.add_argument("--readme", type=Path, help="also renew the table of this Markdown file")
    options = parser.parse_args()
    print(
        f"{options.streams} streams of {1000 // GAP_MS} chunks/s, {options.seconds:g} s each time"
    )
    print(f"{'':8}{'chunks/s':>10}{'kernel stamp error, ms':>34}{'user-space error, ms':>34}")
    print(f"{'':18}{'p50       p99     p99.9':>34}{'p50       p99     p99.9':>34}  shared   core")
    timing = ("--ttft-ms", "200", "--gap-ms", str(GAP_MS), "--phase-ms", str(GAP_MS))
    with emulator(*timing) as url:
        repeats = []
        for number in range(1, options.repeats + 1):
            repeats.append(_repeat(url, options.streams, options.seconds))
            print(_row(str(number), repeats[-1]), flush=True)
    middle = {name: float(np.median([repeat[name] for repeat in repeats])) for name in repeats[0]}
    print(_row("median", middle))
    result = {
        "streams": options.streams,
        "chunks_per_s_each": 1000 // GAP_MS,
        "seconds": options.seconds,
        "repeats": repeats,
        "median": middle,
        "goal_p99_ms": GOAL_P99_MS,
        "goal_met": max(repeat["kernel_p99_ms"] for repeat in repeats) < GOAL_P99_MS,
        "cores": psutil.cpu_count(),
    }
    line = json.dumps(result)
    if options.write:
        options.write.write_text(line + "\n", encoding="utf-8")
    if options.readme:
        text = options.readme.read_text(encoding="utf-8")
        options.readme.write_text(with_table(text, result), encoding="utf-8")
    print(line)


def with_table(text: str, result: dict[str, Any]) -> str:
    """The Markdown text with the table between its bench marks replaced by that of this result.

    Raises HarnessError where the marks are missing.
    """
    begin, end = "<!-- bench:begin -->", "<!-- bench:end -->"
    if begin not in text or end not in text:
        raise HarnessError(f"no {begin} ... {end} to put the table between")
    middle = result["median"]
    rows = "\n".join(
        f"| {said} | {middle[f'{side}_p50_ms']:.3f} | {middle[f'{side}_p99_ms']:.3f} "
        f"| {middle[f'{side}_p99_9_ms']:.3f} |"
        for side, said in (("kernel", "kernel receive time (recorded)"), ("user", "Python's time"))
    )
    worst = max(repeat["kernel_p99_ms"] for repeat in result["repeats"])
    table = (
        f"| error of a chunk's time, ms | p50 | p99 | p99.9 |\n|---|---|---|---|\n{rows}\n\n"
        f"{result['streams']} streams of {result['chunks_per_s_each']} chunks/s "
        f"({middle['chunks_per_s']:,.0f} chunks/s) for {result['seconds']:g} s, on one core, "
        f"of which it used {middle['core_frac']:.0%}; medians of {len(result['repeats'])} repeats, "
        f"in the worst of which the recorded p99 was {worst:.3f} ms; "
        f"{middle['shared_frac']:.1%} of chunks shared a read."
    )
    return text[: text.index(begin) + len(begin)] + f"\n{table}\n" + text[text.index(end) :]


def _repeat(url: str, streams: int, seconds: float) -> dict[str, float]:
    chunks = round(seconds * 1000 / GAP_MS)
    body = {
        "model": "emulator",
        "prompt": [1] * 32,
        "max_tokens": chunks,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    requests = tuple(
        PlannedRequest(number, "measured", json.dumps(body)) for number in range(1, streams + 1)
    )
    with tempfile.TemporaryDirectory() as folder:
        spool = Path(folder, "spool")
        plan = LoadPlan(
            url=f"{url}/v1/completions",
            in_flight=streams,
            min_requests=streams,
            min_duration_s=0.0,
            timeout_s=seconds * 3 + 10,
            cores=(CLIENT_CORE,),
            spool_path=str(spool),
        )
        save_plan(Path(folder, "plan.json"), plan, requests)
        argv = [sys.executable, "-m", "harness.load", str(Path(folder, "plan.json"))]
        output = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout
        return _compare(spool, json.loads(output.splitlines()[-1]))


def _compare(spool: Path, summary: dict[str, Any]) -> dict[str, float]:
    clock = Clock(read_anchors(spool))
    kernel_ns, user_ns, arrivals_ns, shared = [], [], [], 0
    unstamped = 0
    for raw in read_requests(spool):
        truth = np.array([int(t) for t in TRUTH.findall(raw.data)])
        parsed = parse_request(raw, clock)
        in_user_space = replace(raw, read_kernel_ns=[0] * len(raw.read_bytes))
        if parsed.error or raw.sent_ns is None:
            raise HarnessError(f"request {raw.request_id} against the emulator: {parsed.error}")
        arrived = raw.sent_ns + np.array(parsed.chunk_offset_ns)
        seen = raw.sent_ns + np.array(parse_request(in_user_space, clock).chunk_offset_ns)
        arrivals_ns.append(arrived)
        kernel_ns.append(arrived - truth)
        user_ns.append(seen - truth)
        shared += sum(parsed.chunk_shared)
        unstamped += parsed.unstamped_reads
    arrivals = np.concatenate(arrivals_ns)
    count = len(arrivals)
    return {
        "chunks": count,
        "chunks_per_s": count / (np.ptp(arrivals) / 1e9),
        **_percentiles("kernel", np.concatenate(kernel_ns)),
        **_percentiles("user", np.concatenate(user_ns)),
        "shared_frac": shared / count,
        "unstamped_reads": unstamped,
        "core_frac": summary["cpu_frac"],
        "cpu_s_per_million_chunks": summary["cpu_s"] / count * 1e6,
    }


def _percentiles(name: str, error_ns: np.ndarray) -> dict[str, float]:
    values = np.percentile(np.abs(error_ns), [50, 99, 99.9, 100]) / 1e6
    shares = ("p50", "p99", "p99_9", "max")
    return {f"{name}_{share}_ms": float(v) for share, v in zip(shares, values, strict=True)}


def _row(title: str, repeat: dict[str, float]) -> str:
    errors = "".join(
        f"{'':4}"
        + "".join(f"{repeat[f'{side}_{share}_ms']:10.4f}" for share in ("p50", "p99", "p99_9"))
        for side in ("kernel", "user")
    )
    health = f"{repeat['shared_frac']:8.2%}{repeat['core_frac']:7.0%}"
    return f"{title:8}{repeat['chunks_per_s']:10,.0f}{errors}{health}"


if __name__ == "__main__":
    try:
        main()
    except HarnessError as fault:
        sys.exit(str(fault))
