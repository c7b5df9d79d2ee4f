"""Bare attention kernels on one core, beside what the core can do at most.

    PY harness/jobs/kernels.py --out FILE --repeat N

What: PyTorch's scaled_dot_product_attention with each of its CPU backends, and the kernel of
vLLM's CPU_ATTN, on the same shapes: prefill (as many queries as keys, causal) and decode (one
query). Why: an engine's name for its backend says nothing of what ran. Here torch.profiler says it
for each shape (`ran`), and a matrix product and a copy give the roofline that kernels stand under.

Time of a call: the mean over as many calls as fill 20 ms; three such samples, or one where a call
takes over 0.2 s (over 1 s, the profiled first call is the sample). Keys and values alternate
between sets that together exceed the L2 cache, as a model's layers do. Work counted: flop, 4 x head
size for each pair of a query and a key that it may see; bytes, all queries, keys, values and
results once.

Needs torch and vLLM's kernel library; the package itself is not imported. Units: ns, flop, bytes.
Last line: one JSON object, each backend's best share of the roofline.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
SAMPLE_NS = 20_000_000
SLOW_NS = 200_000_000
ONCE_NS = 1_000_000_000
BEYOND_L2_BYTES = 64 << 20
BLOCK = 128  # tokens a block of vLLM's cache, its default on a CPU
SDPA = {
    "sdpa": nullcontext,  # PyTorch's own choice
    "sdpa-flash": lambda: sdpa_kernel(SDPBackend.FLASH_ATTENTION),
    "sdpa-math": lambda: sdpa_kernel(SDPBackend.MATH),
    "sdpa-efficient": lambda: sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION),
}
OPERATORS = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": "flash",
    "aten::_scaled_dot_product_attention_math": "math",
    "_C::cpu_attention_with_kv_cache": "cpu_attn",
}


Call = Callable[[int], Any]
Tensors = tuple[Tensor, Tensor, Tensor]  # queries, keys, values
Ran = tuple[str | None, int]  # the kernel, and the ns of the call


@dataclass(frozen=True, slots=True)
class Shape:
    """One call. q_tokens: of each sequence, either 1 or all."""

    dtype: str
    batch: int
    heads: int
    kv_heads: int
    head_size: int
    q_tokens: int
    kv_tokens: int

    def flop(self) -> float:
        pairs = self.kv_tokens
        if self.q_tokens > 1:
            pairs = self.q_tokens * (self.q_tokens + 1) // 2
        return 4.0 * self.head_size * pairs * self.heads * self.batch

    def kv_bytes(self, kv_size: int | None = None) -> int:
        """kv_size: bytes of a number in the cache, None for the dtype's."""
        size = kv_size or DTYPES[self.dtype].itemsize
        return 2 * self.batch * self.kv_heads * self.kv_tokens * self.head_size * size

    def moved_bytes(self, kv_size: int | None = None) -> float:
        ends = 2 * self.batch * self.heads * self.q_tokens * self.head_size
        return float(ends * DTYPES[self.dtype].itemsize + self.kv_bytes(kv_size))


def shapes() -> Iterator[Shape]:
    """Lengths at the heads of SmolLM2 (9 over 3); then heads and batch at one length."""
    for dtype in DTYPES:
        for tokens in (128, 512, 2048, 8192):
            yield Shape(dtype, 1, 9, 3, 64, tokens, tokens)
            yield Shape(dtype, 1, 9, 3, 64, 1, tokens)
        for batch, heads, kv_heads in ((4, 9, 3), (1, 9, 9), (1, 32, 8)):
            yield Shape(dtype, batch, heads, kv_heads, 64, 512, 512)
            yield Shape(dtype, batch, heads, kv_heads, 64, 1, 2048)


def backends(shape: Shape) -> list[str]:
    """What is asked for. vllm-vec: its kernel without the AMX tiles that it takes in bfloat16.
    Scores of 8,192 x 8,192 tokens, as "math" keeps them, take gigabytes: in 32 bits alone."""
    names = ["sdpa", "sdpa-flash", "sdpa-math", "vllm"]
    if shape.dtype == "bfloat16":
        names.append("vllm-vec")
        if shape.q_tokens == 8192:
            names.remove("sdpa-math")
    if shape.q_tokens == 1:
        names.append("vllm-fp8kv")
    return names


def tensors(shape: Shape) -> Tensors:
    """Queries, keys and values: [batch, heads, tokens, head size]."""
    dtype = DTYPES[shape.dtype]
    query = torch.randn(shape.batch, shape.heads, shape.q_tokens, shape.head_size)
    key, value = torch.randn(2, shape.batch, shape.kv_heads, shape.kv_tokens, shape.head_size)
    return query.to(dtype), key.to(dtype), value.to(dtype)


def sets_of(shape: Shape) -> list[Tensors]:
    """As many keys and values as exceed the L2 cache together, at least one and at most 64."""
    return [tensors(shape) for _ in range(min(64, -(-BEYOND_L2_BYTES // shape.kv_bytes())))]


def isa_of(backend: str, dtype: str) -> str:
    """The instructions that vLLM 0.32.0 would take: its v1/attention/backends/cpu_attn.py."""
    amx = torch.cpu._is_amx_tile_supported() and dtype == "bfloat16"
    return "amx" if amx and backend != "vllm-vec" else "vec"


class Paged:
    """vLLM's kernel over its own cache: blocks of 128 tokens, in order."""

    def __init__(self, shape: Shape, backend: str) -> None:
        self.shape, self.isa = shape, isa_of(backend, shape.dtype)
        self.kind = "fp8" if backend == "vllm-fp8kv" else "auto"
        blocks = -(-shape.kv_tokens // BLOCK)
        self.table = torch.arange(shape.batch * blocks, dtype=torch.int32).view(shape.batch, -1)
        self.lengths = torch.full((shape.batch,), shape.kv_tokens, dtype=torch.int32)
        self.starts = torch.arange(shape.batch + 1, dtype=torch.int32) * shape.q_tokens
        tokens = torch.arange(shape.kv_tokens)
        self.slots = (torch.arange(shape.batch)[:, None] * blocks * BLOCK + tokens).flatten()
        self.plan = torch.ops._C.get_scheduler_metadata(
            *(shape.batch, shape.heads, shape.kv_heads, shape.head_size, self.lengths),
            *(DTYPES[shape.dtype], self.starts, shape.q_tokens > 1, -1, self.isa, True),
            *(None, self.kind),
        )

    def filled(self, query: Tensor, key: Tensor, value: Tensor) -> Tensors:
        """The queries as the kernel wants them, [tokens, heads, head size], and filled caches."""
        shape = self.shape
        dtype = torch.uint8 if self.kind == "fp8" else DTYPES[shape.dtype]
        rows = (self.table.numel(), shape.kv_heads, 2 * BLOCK, shape.head_size)
        keys, values = torch.zeros(rows, dtype=dtype).chunk(2, dim=2)
        flat = [part.transpose(1, 2).flatten(0, 1).contiguous() for part in (query, key, value)]
        torch.ops._C.cpu_attn_reshape_and_cache(
            *(flat[1], flat[2], keys, values, self.slots, self.isa, 1.0, 1.0, self.kind)
        )
        return flat[0], keys, values

    def __call__(self, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        shape, output = self.shape, torch.empty_like(query)
        torch.ops._C.cpu_attention_with_kv_cache(
            *(query, keys, values, output, self.starts, self.lengths, shape.head_size**-0.5),
            *(shape.q_tokens > 1, None, -1, self.table, 0.0, self.plan, None, None),
            *(1.0, 1.0, self.kind),
        )
        return output.unflatten(0, (shape.batch, -1)).transpose(1, 2)


def call_of(shape: Shape, backend: str, sets: list[Tensors]) -> Call:
    """A backend's attention as a function of the number of the set to use."""
    if backend not in SDPA:
        paged = Paged(shape, backend)
        filled = [paged.filled(*each) for each in sets]
        return lambda turn: paged(*filled[turn % len(filled)])
    grouped = {"is_causal": shape.q_tokens > 1, "enable_gqa": shape.heads != shape.kv_heads}

    def call(turn: int) -> Tensor:
        with SDPA[backend]():
            return scaled_dot_product_attention(*sets[turn % len(sets)], **grouped)

    return call


def library() -> Path:
    """vLLM's kernels for this processor, as its platforms/cpu.py picks them."""
    wide, bf16 = torch.cpu._is_avx512_supported(), torch.cpu._is_avx512_bf16_supported()
    stem = ("_C" if bf16 else "_C_AVX512") if wide else "_C_AVX2"
    return next((Path(torch.__file__).parents[1] / "vllm").glob(f"{stem}.*so"))


def profiled(calls: dict[str, Call]) -> tuple[dict[str, Ran], dict[str, str]]:
    """Runs each call once under torch.profiler: by name, the kernel that ran (None for none that is
    known) and its ns; and of those that raised, the words. One session for all, as it is slow."""
    took: dict[str, int] = {}
    refused: dict[str, str] = {}
    seen: dict[str, set[str]] = {}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for name, call in calls.items():
            try:
                with torch.profiler.record_function(f"asked:{name}"):
                    began = time.perf_counter_ns()
                    call(0)
                    took[name] = time.perf_counter_ns() - began
            except RuntimeError as error:
                refused[name] = str(error).splitlines()[0]
    for event in profile.events():
        if event.name in OPERATORS:
            above = event
            while above and not above.name.startswith("asked:"):
                above = above.cpu_parent
            if above:
                name = above.name.removeprefix("asked:")
                seen.setdefault(name, set()).add(OPERATORS[event.name])
    kernels = {name: seen.get(name, set()) for name in took}
    ran = {name: (one.pop() if len(one) == 1 else None) for name, one in kernels.items()}
    return {name: (ran[name], took[name]) for name in took}, refused


def timed(call: Call, first_ns: int) -> list[int]:
    """ns of one call, in samples."""
    if first_ns > ONCE_NS:
        return [first_ns]
    calls = max(1, SAMPLE_NS // max(first_ns, 1))
    samples = []
    for _ in range(1 if first_ns > SLOW_NS else 3):
        began = time.perf_counter_ns()
        for turn in range(calls):
            call(turn)
        samples.append((time.perf_counter_ns() - began) // calls)
    return samples


def ceilings() -> Iterator[dict[str, Any]]:
    """The most that this core does: products of square matrices, and copies of three sizes."""
    side = 2048
    for dtype in DTYPES:
        left, right = torch.randn(2, side, side).to(DTYPES[dtype])
        out = torch.empty_like(left)
        work = {"dtype": dtype, "flop": 2.0 * side**3, "moved_bytes": 3.0 * left.nbytes}
        yield from _rows("matmul", work, partial(torch.mm, left, right, out=out))
    for size in (1 << 20, 64 << 20, 512 << 20):
        source, target = torch.ones(2, size // 4)
        work = {"dtype": "float32", "size_bytes": size, "moved_bytes": 2.0 * size}
        yield from _rows("copy", work, partial(target.copy_, source))


def _rows(op: str, work: dict[str, Any], run: Callable[[], Any]) -> Iterator[dict[str, Any]]:
    run()
    began = time.perf_counter_ns()
    run()
    samples = timed(lambda _: run(), time.perf_counter_ns() - began)
    for sample, took_ns in enumerate(samples, start=1):
        yield {"op": op, "sample": sample, "took_ns": took_ns, **work}


def attention(shape: Shape, asked: list[str]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Rows of each backend on one shape, and the words of those that were refused."""
    sets = sets_of(shape)
    calls = {backend: call_of(shape, backend, sets) for backend in asked}
    known, refused = profiled(calls)
    rows = []
    for backend, (ran, first_ns) in known.items():
        moved = shape.moved_bytes(1 if backend == "vllm-fp8kv" else None)
        row = {"op": "attention", "backend": backend, "ran": ran, **asdict(shape)}
        row |= {"flop": shape.flop(), "moved_bytes": moved}
        for sample, took_ns in enumerate(timed(calls[backend], first_ns), start=1):
            rows.append(row | {"sample": sample, "took_ns": took_ns})
    return rows, refused


def errors() -> list[dict[str, Any]]:
    """How far each backend is from attention in 64 bits: relative root of the mean square."""
    found = []
    for dtype in DTYPES:
        for q_tokens in (37, 512, 1):
            shape = Shape(dtype, 1, 9, 3, 64, q_tokens, max(q_tokens, 37))
            given = tensors(shape)
            exact = scaled_dot_product_attention(
                *(part.double() for part in given), is_causal=q_tokens > 1, enable_gqa=True
            )
            for backend in backends(shape):
                result = call_of(shape, backend, [given])(0)
                off = (result.double() - exact).square().mean().sqrt()
                error = float(off / exact.square().mean().sqrt())
                found.append(
                    {"backend": backend, "dtype": dtype, "q_tokens": q_tokens}
                    | {"kv_tokens": shape.kv_tokens, "error": error}
                )
    return found


def shares(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Each backend's best share of the roofline of its dtype, in percent."""
    copies = [
        row["moved_bytes"] / row["took_ns"]
        for row in rows
        if row["op"] == "copy" and row["size_bytes"] == BEYOND_L2_BYTES
    ]
    peak = {
        dtype: max(
            row["flop"] / row["took_ns"]
            for row in rows
            if row["op"] == "matmul" and row["dtype"] == dtype
        )
        for dtype in DTYPES
    }
    best: dict[str, float] = {}
    for row in rows:
        if row["op"] == "attention":
            floor_ns = max(row["flop"] / peak[row["dtype"]], row["moved_bytes"] / max(copies))
            name = (
                f"{row['backend']} {row['dtype']} {'prefill' if row['q_tokens'] > 1 else 'decode'}"
            )
            best[name] = max(best.get(name, 0.0), round(100 * floor_ns / row["took_ns"], 1))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="file to write, JSON lines")
    parser.add_argument("--repeat", type=int, required=True)
    given = parser.parse_args()
    torch.manual_seed(given.repeat)
    torch.ops.load_library(str(library()))
    rows = list(ceilings())
    refused: dict[str, str] = {}
    with torch.inference_mode():
        for number, shape in enumerate(shapes()):
            asked = backends(shape) + (["sdpa-efficient"] if number == 0 else [])
            turn = given.repeat % len(asked)
            made, words = attention(shape, asked[turn:] + asked[:turn])
            rows += made
            refused |= words
        facts = {
            "refused": refused,
            "errors": errors(),
            "threads": torch.get_num_threads(),
            "amx": torch.cpu._is_amx_tile_supported(),
            "capability": torch.backends.cpu.get_cpu_capability(),
        }
    with given.out.open("w", encoding="utf-8") as out:
        head = {"table": "job", "versions": {"torch": torch.__version__}, "facts": facts}
        for line in (head, *({"table": "kernel_sample", **row} for row in rows)):
            out.write(json.dumps(line) + "\n")
    print(json.dumps({"best_share_of_roofline_percent": shares(rows)}))


if __name__ == "__main__":
    main()
