"""One model in Transformers with each of its attention implementations, on one core.

    PY harness/jobs/model_attention.py --out FILE --repeat N --model FOLDER

What: the same prompt of 256 tokens and the same decode steps after it, with "eager" (matrix
products and a softmax in Python), with "sdpa" as PyTorch chooses, and with "sdpa" held to one of
PyTorch's backends. Why: beside the bare kernels this says what a kernel's speed is worth in a whole
model. `ran` is what torch.profiler saw, not what was asked for. Rows: op "model", took_ns of a
forward pass, 32-bit floats. Needs torch and Transformers. Last line: one JSON object, medians, ms.
"""

import argparse
import json
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any

import torch
import transformers
from torch.nn.attention import SDPBackend, sdpa_kernel

PROMPT_TOKENS = 256
STEPS = 6
BACKENDS: dict[str, tuple[str, list[SDPBackend]]] = {
    "eager": ("eager", []),
    "sdpa": ("sdpa", []),
    "sdpa-flash": ("sdpa", [SDPBackend.FLASH_ATTENTION]),
    "sdpa-math": ("sdpa", [SDPBackend.MATH]),
}
OPERATORS = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": "flash",
    "aten::_scaled_dot_product_attention_math": "math",
}


def held_to(backends: list[SDPBackend]) -> AbstractContextManager[Any]:
    return sdpa_kernel(backends) if backends else nullcontext()


def seen(profile: Any) -> str | None:
    """The one kernel of attention in a profile; eager is a softmax without any of them."""
    keys = {event.key for event in profile.key_averages()}
    found = [name for operator, name in OPERATORS.items() if operator in keys]
    if not found and "aten::_softmax" in keys:
        return "eager"
    return found[0] if len(found) == 1 else None


def measured(model: Any, backend: str, ids: torch.Tensor) -> list[dict[str, Any]]:
    """A profiled prefill and step, which give `ran`, then a timed prefill and timed steps."""
    implementation, backends = BACKENDS[backend]
    model.set_attn_implementation(implementation)
    cpu = torch.profiler.ProfilerActivity.CPU
    rows = []
    with held_to(backends), torch.inference_mode():
        with torch.profiler.profile(activities=[cpu]) as profile:
            model(input_ids=ids)
        prefilled = seen(profile)
        began = time.perf_counter_ns()
        cache = model(input_ids=ids).past_key_values
        rows.append((PROMPT_TOKENS, PROMPT_TOKENS, prefilled, time.perf_counter_ns() - began))
        with torch.profiler.profile(activities=[cpu]) as profile:
            model(input_ids=ids[:, :1], past_key_values=cache)
        decoded = seen(profile)
        for _ in range(STEPS):
            began = time.perf_counter_ns()
            model(input_ids=ids[:, :1], past_key_values=cache)
            took_ns = time.perf_counter_ns() - began
            rows.append((1, PROMPT_TOKENS, decoded, took_ns))
    return [
        {"op": "model", "backend": backend, "ran": ran, "dtype": "float32", "batch": 1}
        | {"q_tokens": q_tokens, "kv_tokens": kv_tokens, "sample": sample, "took_ns": took_ns}
        for sample, (q_tokens, kv_tokens, ran, took_ns) in enumerate(rows, start=1)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, required=True, help="file to write, JSON lines")
    parser.add_argument("--repeat", type=int, required=True)
    parser.add_argument("--model", required=True, help="folder of the model")
    given = parser.parse_args()
    torch.manual_seed(given.repeat)
    model = transformers.AutoModelForCausalLM.from_pretrained(given.model, dtype=torch.float32)
    ids = torch.randint(100, model.config.vocab_size, (1, PROMPT_TOKENS))
    rows: list[dict[str, Any]] = []
    refused: dict[str, str] = {}
    turn = given.repeat % len(BACKENDS)
    for backend in [*BACKENDS][turn:] + [*BACKENDS][:turn]:
        try:
            rows += measured(model, backend, ids)
        except RuntimeError as error:
            refused[backend] = str(error).splitlines()[0]
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    head = {"table": "job", "versions": versions, "facts": {"refused": refused}}
    with given.out.open("w", encoding="utf-8") as out:
        for line in (head, *({"table": "kernel_sample", **row} for row in rows)):
            out.write(json.dumps(line) + "\n")
    steps = {
        backend: median(r["took_ns"] for r in rows if (r["backend"], r["q_tokens"]) == (backend, 1))
        / 1e6
        for backend in BACKENDS
        if backend not in refused
    }
    print(json.dumps({"decode_step_ms": steps}))


if __name__ == "__main__":
    main()
