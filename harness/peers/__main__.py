"""The recorder against its peers, on the same emulator and the same two cores.

    python -m harness.peers [--write FILE] [--rates 1000 5000] [--tools AIPerf]       (make bench)

Every tool takes the same streams at each chunk rate, in turns, and is held against the emulator's
own times; then every tool meets the same faults. The last line is one JSON object.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from harness.engines.models import ensure_model
from harness.errors import HarnessError
from harness.peers import truth
from harness.peers.drive import Runner, emulator, take_truth
from harness.peers.environments import ensure, version
from harness.peers.faults import FAULTS, probe
from harness.peers.store import Store, free_path
from harness.peers.tools import TOOLS, Load, Tool
from harness.record import commit
from harness.render import manifest
from harness.telemetry import machine

ROOT = Path(__file__).parents[2]
GAP_MS = 20  # 50 chunks/s a stream
TTFT_MS = 200
RATES = (1_000, 5_000, 10_000, 20_000, 50_000)
WITHIN_MS = 1  # a tool's ceiling is the highest rate at which its p99 is
HOPELESS_MS = 20  # a rate at which a tool's p99 was further off is not repeated


def main() -> None:
    parser = argparse.ArgumentParser(description="The recorder against other load generators.")
    parser.add_argument("--write", type=Path, help="the DuckDB file to make; else data/peers/...")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each stream")
    parser.add_argument("--rates", type=int, nargs="+", default=RATES, help="chunks/s")
    parser.add_argument("--tools", nargs="+", metavar="NAME", help="these alone")
    parser.add_argument("--no-faults", action="store_true")
    options = parser.parse_args()
    tools = [tool for tool in TOOLS if not options.tools or tool.name in options.tools]
    path = options.write or free_path(ROOT, machine.tier())
    store = Store(path, machine.tier())
    where = (1, commit(ROOT), json.dumps(machine.describe()))
    store.insert("session", *where, GAP_MS, TTFT_MS, options.seconds, WITHIN_MS, HOPELESS_MS)
    model_dir = Path(str(ensure_model("smollm2-135m-instruct", ROOT).path))
    with ExitStack() as open_runners:
        runners = _prepare(tools, store, open_runners)
        for place, fault in enumerate(FAULTS):
            store.insert("fault_case", fault.name, place, fault.what, fault.right)
        if not options.no_faults:
            _meet_faults(runners, store, model_dir)
        _measure(runners, store, model_dir, options)
    store.close()
    if options.write is None:
        manifest.update(ROOT, path)
    print(json.dumps({"file": str(path), "tools": [r.tool.name for r in runners]}))


def _prepare(tools: Sequence[Tool], store: Store, open_runners: ExitStack) -> list[Runner]:
    """The tools that can be run, imported; of the others the reason is kept."""
    runners = []
    for place, tool in enumerate(tools):
        error = None
        try:
            ensure(tool, ROOT)
            runner = Runner(tool, ROOT)
            open_runners.callback(runner.close)
            runner.ready()
            runners.append(runner)
        except HarnessError as fault:
            error = str(fault).replace(f"{ROOT}/", "")  # a recording names no path of its machine
            print(f"{tool.name}: {error}", flush=True)
        found = version(tool, ROOT) if tool.environment else commit(ROOT)
        row = (tool.package, found, tool.keeps, tool.matched_by, error)
        store.insert("tool", tool.name, place, *row)
    return runners


def _meet_faults(runners: Sequence[Runner], store: Store, model_dir: Path) -> None:
    """All faults, two tools at a time: nothing here is timed."""

    def meet(runner: Runner) -> list[tuple[str, bool, str]]:
        return [(fault.name, *probe(runner, fault, model_dir)) for fault in FAULTS]

    with ThreadPoolExecutor(2) as pool:
        for runner, found in zip(runners, pool.map(meet, runners), strict=True):
            for name, noticed, said in found:
                store.insert("fault_catch", runner.tool.name, name, noticed, said)
            count = sum(noticed for _, noticed, _ in found)
            print(f"{runner.tool.name:22} noticed {count} of {len(FAULTS)} faults", flush=True)


def _measure(
    runners: Sequence[Runner], store: Store, model_dir: Path, options: argparse.Namespace
) -> None:
    hopeless: set[tuple[str, int]] = set()
    columns = f"{'TTFT error p50, p99':>18}  {'gap error p50, p99':>18}  CPU s/M chunks"
    print(f"{'':22}{'chunks/s':>9}{'seen/s':>9}  {columns}")
    timing = ("--ttft-ms", str(TTFT_MS), "--gap-ms", str(GAP_MS), "--phase-ms", str(GAP_MS))
    for run_id, (repeat, rate, runner) in enumerate(_turns(runners, options), 1):
        if (runner.tool.name, rate) in hopeless:
            continue
        streams = rate * GAP_MS // 1000
        chunks = round(options.seconds * 1000 / GAP_MS)
        with emulator(*timing) as url, tempfile.TemporaryDirectory() as folder:
            load = Load(url, model_dir, Path(folder), streams, chunks)
            worst_ms = _one(run_id, repeat, rate, runner, load, store)
        if worst_ms > HOPELESS_MS:
            hopeless.add((runner.tool.name, rate))


def _turns(
    runners: Sequence[Runner], options: argparse.Namespace
) -> Iterator[tuple[int, int, Runner]]:
    for repeat in range(1, options.repeats + 1):
        for rate in options.rates:
            for runner in runners:
                yield repeat, rate, runner


def _one(run_id: int, repeat: int, rate: int, runner: Runner, load: Load, store: Store) -> float:
    """Runs, compares and stores; returns the p99 error of gaps (or mean gaps) in ms."""
    tool = runner.tool
    run = runner.run(load)
    served = take_truth(load.url)
    fault, pairs, parse_cpu_s = None, [], 0.0
    try:
        before_s = time.process_time()
        report = tool.read(load.folder)
        parse_cpu_s = 0.0 if tool.environment else time.process_time() - before_s
        pairs = truth.match(served, report.seen)
    except HarnessError as error:
        fault = f"{error} (exit status {run.status})"
    if not pairs:
        fault = fault or f"no request could be measured (exit status {run.status})"
    elif len(pairs) < load.requests:
        fault = f"{load.requests - len(pairs)} of {load.requests} requests failed or were lost"
    cpu_s = run.watch.between(*truth.window_ns(pairs)) if pairs else None
    seen_per_s = truth.seen_per_s(pairs) if pairs else None
    store.insert(
        "bench_run",
        *(run_id, tool.name, repeat, load.requests, float(rate), _shown(runner, load)),
        *(run.status, fault, run.wall_s, len(served), len(pairs)),
        sum(len(each.write_ns) for each, _ in pairs),
        truth.written_per_s(served) if served else None,
        *(seen_per_s, cpu_s, parse_cpu_s),
    )
    errors = {
        "ttft": truth.ttft_errors_ns(pairs),
        "gap": truth.gap_errors_ns(pairs),
        "mean_gap": truth.mean_gap_errors_ns(pairs),
    }
    for measure, errors_ns in errors.items():
        store.errors(run_id, measure, errors_ns)
    return store.show(run_id)


def _shown(runner: Runner, load: Load) -> list[str]:
    """The command line as a reader may repeat it: without this machine's paths."""
    tool = runner.tool
    places = {str(load.folder): "FOLDER", str(load.model_dir): "MODEL", load.url: "URL"}
    words = ["python", "-m", tool.module, *tool.argv(load)]
    for place, name in places.items():
        words = [word.replace(place, name) for word in words]
    return words


if __name__ == "__main__":
    try:
        main()
    except HarnessError as fault:
        sys.exit(str(fault))
