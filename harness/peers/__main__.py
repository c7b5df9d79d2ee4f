"""The recorder against its peers, on the same emulator and the same two cores.

    python -m harness.peers                                                           (make bench)
    python -m harness.peers --write FILE [--rates 1000 5000] [--tools AIPerf]

Every tool meets the same faults; then every tool takes the same streams at each chunk rate, in
turns, and is held against the emulator's own times. Printed at the end: the page's rows of what
came out. The last line is one JSON object. A full run takes about twelve minutes.
"""

import argparse
import json
import resource
import signal
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
from harness.render import manifest, queries
from harness.render.figure import cell_text
from harness.telemetry import machine

ROOT = Path(__file__).parents[2]
GAP_MS = 20  # 50 chunks/s a stream
TTFT_MS = 200
RATES = (1_000, 5_000, 10_000, 20_000, 35_000, 50_000, 70_000)
WITHIN_MS = 1  # a tool's ceiling is the highest rate at which its p99 is
# A rate is hopeless for a tool, so that it is not repeated and no higher one tried, where the
# tool's p99 was further off than this, where it took in less than this share of the rate, or where
# it had to be ended.
HOPELESS_MS = 20
HOPELESS_FRAC = 0.5
QUERIES = ROOT / "episodes" / "91-peers" / "queries.sql"
SHOWN = ("summary", "faults", "goals")


def main() -> None:
    options = _options()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the emulator and the tools have it
    path = options.write or free_path(ROOT, machine.tier())
    store = Store(path, machine.tier())
    where = (1, commit(ROOT), json.dumps(machine.describe()), GAP_MS, TTFT_MS, options.seconds)
    store.insert("session", *where, WITHIN_MS, HOPELESS_MS, HOPELESS_FRAC)
    model_dir = Path(str(ensure_model("smollm2-135m-instruct", ROOT).path))
    with ExitStack() as open_runners:
        runners = _prepare([TOOLS[place] for place in options.places], store, open_runners)
        for place, fault in enumerate(FAULTS):
            store.insert("fault_case", fault.name, place, fault.what, fault.right)
        if not options.no_faults:
            _meet_faults(runners, store, model_dir)
        _measure(runners, store, model_dir, options)
    store.close()
    if options.write is None:
        manifest.update(ROOT, path)
    _print_rows(path)
    print(json.dumps({"file": str(path), "tools": [r.tool.name for r in runners]}))


def _options() -> argparse.Namespace:
    names = [tool.name for tool in TOOLS]
    parser = argparse.ArgumentParser(description="The recorder against other load generators.")
    parser.add_argument("--write", type=Path, help="the DuckDB file to make; else data/peers/...")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each stream")
    parser.add_argument("--rates", type=int, nargs="+", default=RATES, help="chunks/s")
    parser.add_argument("--tools", nargs="+", choices=names, default=names, help="these alone")
    parser.add_argument("--no-faults", action="store_true")
    options = parser.parse_args()
    options.rates = sorted(set(options.rates))
    options.places = [place for place, name in enumerate(names) if name in options.tools]
    if options.write is None and (options.no_faults or len(options.places) < len(TOOLS)):
        parser.error("the site shows full runs alone: name another file for this one with --write")
    return options


def _prepare(tools: Sequence[Tool], store: Store, open_runners: ExitStack) -> list[Runner]:
    """The tools that can be run, imported; of the others the reason is kept."""
    runners = []
    for tool in tools:
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
        store.insert("tool", tool.name, TOOLS.index(tool), *row)
    return runners


def _meet_faults(runners: Sequence[Runner], store: Store, model_dir: Path) -> None:
    """All faults: two tools side by side, but one at a time where a time is judged."""

    def meet(runner: Runner, is_timed: bool = False) -> list[tuple[str, bool, str]]:
        faults = [fault for fault in FAULTS if fault.is_timed == is_timed]
        return [(fault.name, *probe(runner, fault, model_dir)) for fault in faults]

    with ThreadPoolExecutor(2) as pool:
        untimed = list(pool.map(meet, runners))
    for runner, found in zip(runners, untimed, strict=True):
        found += meet(runner, is_timed=True)
        for name, noticed, said in found:
            store.insert("fault_catch", runner.tool.name, name, noticed, said)
        count = sum(noticed for _, noticed, _ in found)
        print(f"{runner.tool.name:22} noticed {count} of {len(FAULTS)} faults", flush=True)


def _measure(
    runners: Sequence[Runner], store: Store, model_dir: Path, options: argparse.Namespace
) -> None:
    hopeless: dict[str, int] = {}  # the lowest such rate of each tool
    columns = f"{'TTFT error p50, p99':>18}  {'gap error p50, p99':>18}  CPU s/M chunks"
    print(f"{'':22}{'chunks/s':>9}{'seen/s':>9}  {columns}")
    timing = ("--ttft-ms", str(TTFT_MS), "--gap-ms", str(GAP_MS), "--phase-ms", str(GAP_MS))
    for run_id, (repeat, rate, runner) in enumerate(_turns(runners, options), 1):
        name = runner.tool.name
        if rate >= hopeless.get(name, rate + 1):
            if repeat == 1:
                print(f"{name:22}{rate:9,.0f}  not tried: hopeless at {hopeless[name]:,}")
                store.insert("untried", name, rate, hopeless[name])
            continue
        streams = rate * GAP_MS // 1000
        chunks = round(options.seconds * 1000 / GAP_MS)
        with emulator(*timing) as url, tempfile.TemporaryDirectory() as folder:
            load = Load(url, model_dir, Path(folder), streams, chunks)
            if _one(run_id, repeat, rate, runner, load, store):
                hopeless[name] = rate


def _turns(
    runners: Sequence[Runner], options: argparse.Namespace
) -> Iterator[tuple[int, int, Runner]]:
    for repeat in range(1, options.repeats + 1):
        for rate in options.rates:
            for runner in runners:
                yield repeat, rate, runner


def _one(run_id: int, repeat: int, rate: int, runner: Runner, load: Load, store: Store) -> bool:
    """Runs, compares and stores; returns whether the rate is hopeless for the tool."""
    tool = runner.tool
    run = runner.run(load)
    served = take_truth(load.url)
    fault, pairs, parse_cpu_s = None, [], 0.0
    try:
        before_s = time.process_time()
        report = tool.report(load.folder)
        parse_cpu_s = 0.0 if tool.environment else time.process_time() - before_s
        pairs = truth.match(served, report.seen)
    except HarnessError as error:
        fault = f"{error} (exit status {run.status})"
    if not pairs:
        fault = fault or f"no request could be measured (exit status {run.status})"
    elif len(pairs) < load.requests:
        fault = f"{load.requests - len(pairs)} of {load.requests} requests failed or were lost"
    chunks = sum(len(each.write_ns) for each, _ in pairs)
    cpu_s = run.watch.between(*truth.window_ns(pairs)) if pairs else None
    seen_per_s = truth.seen_per_s(pairs) if pairs else None
    store.insert(
        "bench_run",
        *(run_id, tool.name, repeat, load.requests, float(rate), _shown(runner, load)),
        *(run.status, fault, run.wall_s, len(served), len(pairs)),
        *(chunks, *truth.gap_counts(pairs), truth.written_per_s(served) if chunks else None),
        *(seen_per_s, cpu_s, parse_cpu_s),
    )
    errors = {
        "ttft": truth.ttft_errors_ns(pairs),
        "gap": truth.gap_errors_ns(pairs),
        "mean_gap": truth.mean_gap_errors_ns(pairs),
    }
    for measure, errors_ns in errors.items():
        store.errors(run_id, measure, errors_ns)
    is_off = (store.show(run_id) or 0.0) > HOPELESS_MS
    is_slow = seen_per_s is not None and seen_per_s < HOPELESS_FRAC * rate
    return is_off or is_slow or run.status == -signal.SIGKILL


def _shown(runner: Runner, load: Load) -> list[str]:
    """The command line as a reader may repeat it: without this machine's paths."""
    tool = runner.tool
    places = {str(load.folder): "FOLDER", str(load.model_dir): "MODEL", load.url: "URL"}
    words = ["python", "-m", tool.module, *tool.argv(load)]
    for place, name in places.items():
        words = [word.replace(place, name) for word in words]
    return words


def _print_rows(path: Path) -> None:
    """What came out, as the page's own queries say it."""
    known = queries.parse(QUERIES.read_text(encoding="utf-8"), QUERIES.name)
    for name in SHOWN:
        result = queries.run(path, known[name], QUERIES.name)
        lines = [result.columns, *([cell_text(cell) for cell in row] for row in result.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        print(f"\n{name}")
        for line in lines:
            cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
            print("  ".join(cells).rstrip())


if __name__ == "__main__":
    try:
        main()
    except HarnessError as fault:
        sys.exit(str(fault))
