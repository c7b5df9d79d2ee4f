"""What each precision does to a model's predictions, computed by vLLM itself, in this process.

    PY harness/jobs/scores.py --out FILE --repeat N --texts FILE --question TEXT
        --reference FOLDER --variant NAME=FOLDER,DTYPE,KV[,no-amx][,PIECES] ...

What: the first engine loads FOLDER in 32 bits and keeps, for every token of fixed texts, what it
holds likely. Each variant then reads the same texts, and a row a token says how far it is off: the
log-probability of the token that came, the Kullback-Leibler divergence over the whole vocabulary,
and whether the likeliest token is the same. Why in this process: over HTTP an engine tells a few
log-probabilities, and the divergence needs all of them. A hook on compute_logits reads them.

The texts are prefilled in pieces of 64 tokens, and vLLM's attention on a CPU reads keys and values
from its cache alone, so that what is rounded in the cache is what is scored. Each variant also
continues the texts greedily, eight at once, and answers one question. DTYPE: float32, float16 or
bfloat16. KV: auto, fp8 and the like. no-amx: the processor's tile instructions are hidden from
vLLM. A number as the last field is another size of pieces: the control, the same sums cut in
another way.

What ran is read from the engine's own objects and from torch.profiler over a few steps.
Last line: one JSON object, mean divergence by variant.
"""

import argparse
import gc
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Before vLLM is imported: one process, no binding of threads, the smallest cache.
os.environ |= {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}

import torch
import vllm
from torch import Tensor

PIECE_TOKENS = 64
LONGEST_TOKENS = 1024
OPENING_TOKENS = 40  # of a greedy continuation
GREEDY_TOKENS = 32
OPERATORS = ("_C::", "aten::mm", "aten::addmm", "aten::linear", "aten::_scaled_dot_product")


@dataclass(frozen=True, slots=True)
class Variant:
    """pieces: tokens that are prefilled at a time."""

    name: str
    folder: str
    dtype: str
    kv: str
    amx: bool = True
    pieces: int = PIECE_TOKENS


def parse(given: str) -> Variant:
    """NAME=FOLDER,DTYPE,KV[,no-amx][,PIECES]"""
    name, _, rest = given.partition("=")
    folder, dtype, kv, *more = rest.split(",")
    pieces = [int(part) for part in more if part.isdigit()]
    return Variant(name, folder, dtype, kv, "no-amx" not in more, *pieces)


@contextmanager
def engine(variant: Variant) -> Iterator[Any]:
    """vLLM with the variant's model, and nothing of it afterwards."""
    supported = torch.cpu._is_amx_tile_supported
    if not variant.amx:
        torch.cpu._is_amx_tile_supported = lambda: False
    llm = None
    try:
        llm = vllm.LLM(
            model=variant.folder,
            dtype=variant.dtype,
            kv_cache_dtype=variant.kv,
            max_model_len=LONGEST_TOKENS,
            max_num_batched_tokens=variant.pieces,
            max_num_seqs=8,
            enable_prefix_caching=False,
            enforce_eager=True,
        )
        yield llm
    finally:
        torch.cpu._is_amx_tile_supported = supported
        if llm is not None:
            llm.llm_engine.engine_core.shutdown()
        del llm
        gc.collect()
        vllm.distributed.cleanup_dist_env_and_memory()


def log_probabilities(llm: Any, ids: list[int]) -> Tensor:
    """Of every vocabulary entry, at each position of a text but the last: [tokens - 1, vocabulary].

    A step asks for logits twice: for the token to come, one row, and for the prompt's. The second
    ones are kept. Raises RuntimeError where their number is not that of the text.
    """
    kept: list[Tensor] = []

    def install(model: Any) -> None:
        compute = type(model).compute_logits

        def hook(hidden: Tensor) -> Tensor:
            logits: Tensor = compute(model, hidden)
            if len(logits) > 1:
                kept.append(logits.float().log_softmax(-1))
            return logits

        model.compute_logits = hook

    def remove(model: Any) -> None:
        del model.compute_logits

    llm.apply_model(install)
    asked = vllm.SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=0)
    llm.generate([{"prompt_token_ids": ids}], asked, use_tqdm=False)
    llm.apply_model(remove)
    scored = torch.cat(kept)
    if len(scored) != len(ids) - 1:
        raise RuntimeError(f"{len(scored)} rows of logits for {len(ids)} tokens")
    return scored


def compared(scored: Tensor, reference: Tensor, ids: list[int]) -> Iterator[dict[str, Any]]:
    """A row a token: position counts from 0, and the first token is predicted from nothing."""
    kl = (reference.exp() * (reference - scored)).sum(-1).clamp(min=0)
    same = scored.argmax(-1) == reference.argmax(-1)
    for position, token in enumerate(ids[1:], start=1):
        row = position - 1
        yield {
            "position": position,
            "token_id": token,
            "logprob": float(scored[row, token]),
            "reference_logprob": float(reference[row, token]),
            "kl_nats": float(kl[row]),
            "top1": bool(same[row]),
        }


def continued(llm: Any, texts: dict[str, list[int]]) -> list[list[int]]:
    """Greedy continuations of each text from two places, all at once."""
    starts = [ids[at : at + OPENING_TOKENS] for ids in texts.values() for at in (0, len(ids) // 2)]
    asked = vllm.SamplingParams(temperature=0, max_tokens=GREEDY_TOKENS, ignore_eos=True)
    done = llm.generate([{"prompt_token_ids": ids} for ids in starts], asked, use_tqdm=False)
    return [list(each.outputs[0].token_ids) for each in done]


def answered(llm: Any, question: str) -> dict[str, Any]:
    """The greedy answer to a question, and the two likeliest first tokens: a pair that is near a
    tie tips with any rounding, and the answer with it."""
    asked = vllm.SamplingParams(temperature=0, max_tokens=12, logprobs=2)
    (done,) = llm.chat([{"role": "user", "content": question}], asked, use_tqdm=False)
    best = sorted(done.outputs[0].logprobs[0].values(), key=lambda token: token.rank)[:2]
    return {
        "answer": done.outputs[0].text,
        "tokens": [token.decoded_token for token in best],
        "logprobs": [token.logprob for token in best],
    }


def what_ran(llm: Any, ids: list[int]) -> dict[str, Any]:
    """Names of the engine's own objects, and the operators of a prefill and three decode steps."""

    def look(model: Any) -> dict[str, Any]:
        (first, *_) = [part for part in model.modules() if hasattr(part, "kv_cache")]
        (linear, *_) = [part for part in model.modules() if hasattr(part, "quant_method")][1:]
        chosen = getattr(linear, "scheme", None) or linear.quant_method
        return {
            "attention": type(first.impl).__name__,
            "isa": getattr(first, "isa", None),
            "kv_dtype": str(first.kv_cache.dtype).removeprefix("torch."),
            "linear": type(getattr(chosen, "kernel", chosen)).__name__,
        }

    asked = vllm.SamplingParams(temperature=0, max_tokens=4, ignore_eos=True)
    cpu = torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[cpu]) as profile:
        llm.generate([{"prompt_token_ids": ids[:OPENING_TOKENS]}], asked, use_tqdm=False)
    operators = {
        event.key: round(event.self_cpu_time_total / 1e3, 2)
        for event in profile.key_averages()
        if event.key.startswith(OPERATORS)
    }
    found: dict[str, Any] = llm.apply_model(look)[0]
    return found | {"operators_ms": operators}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, required=True, help="file to write, JSON lines")
    parser.add_argument("--repeat", type=int, required=True)
    parser.add_argument("--texts", type=Path, required=True, help="JSON lines: id, text")
    parser.add_argument("--reference", required=True, help="folder of the model in 32 bits")
    parser.add_argument("--question", required=True, help="asked of each variant")
    parser.add_argument("--variant", action="append", default=[], type=parse)
    given = parser.parse_args()
    written = [json.loads(line) for line in given.texts.read_text(encoding="utf-8").splitlines()]
    texts: dict[str, list[int]] = {}
    reference: dict[str, Tensor] = {}
    rows: list[dict[str, Any]] = []
    ran, greedy, question, refused = {}, {}, {}, {}
    first = Variant("reference", given.reference, "float32", "auto")
    for variant in (first, *given.variant):
        try:
            with engine(variant) as llm, torch.inference_mode():
                tokenizer = llm.get_tokenizer()
                texts = texts or {line["id"]: tokenizer.encode(line["text"]) for line in written}
                for text_id, ids in texts.items():
                    scored = log_probabilities(llm, ids)
                    known = {"variant": variant.name, "text_id": text_id}
                    against = reference.setdefault(text_id, scored)
                    rows += [known | row for row in compared(scored, against, ids)]
                greedy[variant.name] = continued(llm, texts)
                question[variant.name] = answered(llm, given.question)
                ran[variant.name] = what_ran(llm, next(iter(texts.values())))
        except Exception as error:
            if variant is first:
                raise
            refused[variant.name] = f"{type(error).__name__}: {error}".splitlines()[0]
            rows = [row for row in rows if row["variant"] != variant.name]
    facts = {"ran": ran, "greedy": greedy, "question": question, "refused": refused}
    versions = {"torch": torch.__version__, "vllm": vllm.__version__}
    with given.out.open("w", encoding="utf-8") as out:
        head = {"table": "job", "versions": versions, "facts": facts}
        for line in (head, *({"table": "token_score", **row} for row in rows)):
            out.write(json.dumps(line) + "\n")
    means = {
        name: sum(row["kl_nats"] for row in rows if row["variant"] == name)
        / max(1, sum(row["variant"] == name for row in rows))
        for name in ran
    }
    print(json.dumps({"mean_kl_nats": means, "refused": sorted(refused)}))


if __name__ == "__main__":
    main()
