"""Small models of Episode 03: what a prefix cache serves, and when it serves nothing.

The second one is a replay: harness/prefix_cache.py has both engines' caches, of which the
page's test holds every request of the recording against them.
"""

from harness import prefix_cache
from harness.render.model import Input, Output, model

ENGINES = ["vllm", "sglang"]


@model(
    formula="cached = floor(min(shared, prompt − 1) / block) × block\n"
    "TTFT = base + per prompt token × prompt + per computed token × (prompt − cached)",
    inputs=[
        Input("engine", "Engine, for its speed", ENGINES),
        Input("block_tokens", "Block of its cache", [1, 16, 128], default=128, unit="tokens"),
        Input("prompt_tokens", "Prompt", [128, 129, 257, 300, 512], default=512, unit="tokens"),
        Input(
            "shared_tokens",
            "Its beginning that was seen before",
            [0, 15, 16, 64, 127, 128, 129, 255, 256, 384, 461, 511, 512],
            default=384,
            unit="tokens",
        ),
    ],
    outputs=[
        Output("cached_tokens", "From the cache", "tokens", ".0f", within=0.0),
        Output("ttft_ms", "Time to first token", "ms", ",.0f", within=0.25),
        Output("saved_percent", "Of the wait, saved", "%", ".0f"),
    ],
    constants="model_fit",
    check="model_points",
)
def reuse(
    block_tokens: int,
    prompt_tokens: int,
    shared_tokens: int,
    base_ms: float,
    per_prompt_token_ms: float,
    per_token_ms: float,
) -> dict[str, float]:
    """How much of a prompt does the cache save?"""
    cached = min(shared_tokens, prompt_tokens - 1) // block_tokens * block_tokens
    cold_ms = base_ms + (per_prompt_token_ms + per_token_ms) * prompt_tokens
    ttft_ms = cold_ms - per_token_ms * cached
    return {
        "cached_tokens": cached,
        "ttft_ms": ttft_ms,
        "saved_percent": 100 * (1 - ttft_ms / cold_ms),
    }


@model(
    formula="A replay: all documents are sent in turn, twice; where room lacks, what was used\n"
    "longest ago goes. Share = cached tokens of the second round / its prompt tokens",
    inputs=[
        Input("engine", "Cache of", ENGINES),
        Input("documents", "Documents", [*range(2, 17)], default=8),
        Input("document_tokens", "Each", [128, 256, 384, 512], default=384, unit="tokens"),
    ],
    outputs=[
        Output("cached_percent", "From the cache", "%", ".1f", within=0.0),
        Output("asked_tokens", "All documents", "tokens", ",.0f"),
    ],
    constants="pool",
    check="pool_points",
)
def working_set(
    documents: int, document_tokens: int, pool_tokens: int, block_tokens: int
) -> dict[str, float]:
    """When do documents in turn still find each other in the cache?"""
    cache = prefix_cache.empty(pool_tokens, block_tokens)
    prompts = [[(document, i) for i in range(document_tokens)] for document in range(documents)]
    for prompt in prompts:
        cache.serve(prompt, output_tokens=2)
    hits = sum(cache.serve(prompt, output_tokens=2) for prompt in prompts)
    asked = documents * document_tokens
    return {"cached_percent": 100 * hits / asked, "asked_tokens": asked}
