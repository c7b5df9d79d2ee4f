"""What two processes pay to talk, and what they take from each other, without any engine.

Two processes, each pinned to a core of its own and with one thread, run:

- all_reduce and all_gather of float32 in the sizes of the episode's model, through `gloo` (the
  transport of PyTorch) and through `shm`, the shared-memory operation that vLLM's CPU build uses
  inside a node, loaded from its package.
- copy and matmul: each process on buffers of its own, alone (ranks = 1, the other one waits) and
  both at the same time (ranks = 2). The matmul reads as many weights as a decode step of the model
  for a batch of tokens. What both at once take longer is memory bandwidth, for they share nothing
  else.

A sample is the mean of as many operations as fill about 20 ms; took_ns is of the slower process.
Run by the harness as `PYTHON harness/jobs/collectives.py --out FILE --repeat R`. It writes JSON
lines: one of table `job` (versions, and why a transport is missing), else of `kernel_sample`.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

RANKS = 2
SAMPLES = 8
FILL_NS = 20_000_000
HIDDEN, VOCABULARY, BYTES = 512, 49_152, 4
TOKENS = (1, 4, 8, 64, 256, 1024)  # in a step: of an all-reduce, hidden values each
SEQUENCES = (1, 4, 8)  # of an all-gather, half a vocabulary of logits each
COPY_BYTES = (1 << 20, 1 << 28)
WEIGHT_ROWS = 122_880  # of HIDDEN values: the 63 million that a step of the dense model reads
BATCHES = (1, 8)
Row = dict[str, Any]
Rows = Iterator[tuple[Row, Callable[[], object]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeat", type=int, required=True)
    args = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:RANKS]
    if len(cores) < RANKS:
        raise SystemExit("collectives.py: needs two cores")
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as scratch:
        ranks = [
            context.Process(target=_rank, args=(rank, core, scratch, str(args.out), args.repeat))
            for rank, core in enumerate(cores)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
    if any(process.exitcode for process in ranks):
        raise SystemExit("collectives.py: a process failed")


def _rank(rank: int, core: int, scratch: str, out: str, repeat: int) -> None:
    """One of the two processes; the first one writes."""
    os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{scratch}/rendezvous", rank=rank, world_size=RANKS
    )
    shm, lacks = _shared_memory(rank, f"token-by-token-{os.path.basename(scratch)}")
    rows = [*_together(_collectives("gloo", None))]
    if shm is not None:
        rows += _together(_collectives("shm", shm))
    rows += _both_and_alone(rank)
    if rank == 0:
        facts = {"repeat": repeat, "shm": lacks or "vllm"}
        job = {"table": "job", "versions": {"torch": torch.__version__}, "facts": facts}
        lines = [job, *({"table": "kernel_sample", "dtype": "float32"} | row for row in rows)]
        Path(out).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


def _shared_memory(rank: int, name: str) -> tuple[int | None, str]:
    """A handle of vLLM's shared-memory operations, or None and why not."""
    kernels = next(
        (library for library in _libraries() if library.exists()), Path("no kernels of vLLM")
    )
    try:
        torch.ops.load_library(str(kernels))
        handle = torch.ops._C.init_shm_manager(name, RANKS, rank, 1)
        dist.barrier()
        torch.ops._C.join_shm_manager(handle, name)
        dist.barrier()
    except (OSError, RuntimeError, AttributeError) as error:
        return None, str(error).splitlines()[0]
    return int(handle), ""


def _libraries() -> Iterator[Path]:
    """Where vLLM keeps its kernels for this processor, the best first, as its platform picks."""
    package = Path(torch.__file__).parents[1] / "vllm"
    wide, bf16 = torch.cpu._is_avx512_supported(), torch.cpu._is_avx512_bf16_supported()
    for stem, fits in (("_C", wide and bf16), ("_C_AVX512", wide), ("_C_AVX2", True)):
        if fits:
            yield from package.glob(f"{stem}.*so")


def _collectives(backend: str, shm: int | None) -> Rows:
    """The operations of a step, by size."""
    for tokens in TOKENS:
        data = torch.zeros(tokens * HIDDEN)
        row = {"op": "all_reduce", "batch": tokens, "size_bytes": data.numel() * BYTES}
        call = (
            partial(dist.all_reduce, data)
            if shm is None
            else partial(torch.ops._C.shm_allreduce, shm, data)
        )
        yield row | {"backend": backend, "ranks": RANKS}, call
    for sequences in SEQUENCES:
        part = torch.zeros(sequences, VOCABULARY // RANKS)
        whole = torch.zeros(RANKS * sequences, VOCABULARY // RANKS)
        row = {"op": "all_gather", "batch": sequences, "size_bytes": part.numel() * BYTES}
        call = (
            partial(dist.all_gather_into_tensor, whole, part)
            if shm is None
            else partial(torch.ops._C.shm_all_gather, shm, part, whole)
        )
        yield row | {"backend": backend, "ranks": RANKS}, call


def _own_work() -> Rows:
    """Copies, and products with as many weights as a step reads, on this process's own buffers."""
    for size in COPY_BYTES:
        source, target = torch.ones(size // BYTES), torch.empty(size // BYTES)
        row = {"op": "copy", "size_bytes": size, "moved_bytes": 2.0 * size}
        yield row, partial(target.copy_, source)
    weight = torch.ones(WEIGHT_ROWS, HIDDEN)
    for batch in BATCHES:
        given = torch.ones(batch, HIDDEN)
        row = {
            "op": "matmul",
            "batch": batch,
            "flop": 2.0 * batch * WEIGHT_ROWS * HIDDEN,
            "moved_bytes": float(BYTES * WEIGHT_ROWS * HIDDEN),
        }
        yield row, partial(torch.nn.functional.linear, given, weight)


def _both_and_alone(rank: int) -> list[Row]:
    """The first process alone, then both at once."""
    rows = []
    for row, call in _own_work():
        named = row | {"backend": "torch"}
        call()
        dist.barrier()
        if rank == 0:
            rows += _samples(named | {"ranks": 1}, _timed(call, _count(call)))
        dist.barrier()
        rows += _together(iter([(named | {"ranks": RANKS}, call)]))
    return rows


def _together(work: Rows) -> list[Row]:
    """Both processes do the same, as often; a sample is what the slower one took."""
    rows = []
    for row, call in work:
        call()
        times = torch.tensor([_count(call)])
        dist.all_reduce(times, dist.ReduceOp.MIN)  # equally often, or one waits for ever
        mine = torch.tensor(_timed(call, int(times)))
        dist.all_reduce(mine, dist.ReduceOp.MAX)
        rows += _samples(row, mine.tolist())
    return rows


def _count(call: Callable[[], object]) -> int:
    """Operations that fill a sample: by one that both processes do."""
    begun = time.perf_counter_ns()
    call()
    return max(FILL_NS // max(time.perf_counter_ns() - begun, 1), 1)


def _timed(call: Callable[[], object], count: int) -> list[int]:
    """Mean time of an operation in each sample, ns."""
    took = []
    for _ in range(SAMPLES):
        begun = time.perf_counter_ns()
        for _ in range(count):
            call()
        took.append((time.perf_counter_ns() - begun) // count)
    return took


def _samples(row: Row, took: list[int]) -> list[Row]:
    return [row | {"sample": n, "took_ns": int(ns)} for n, ns in enumerate(took, start=1)]


if __name__ == "__main__":
    main()
