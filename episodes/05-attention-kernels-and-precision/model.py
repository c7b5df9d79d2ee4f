"""Small models of Episode 05: the time of an attention kernel, and the tokens that a pool holds."""

from typing import Any

from harness.render.model import Input, Output, model

# Layers, key heads and head size; from each model's config.json.
MODELS = {"SmolLM2-135M": (30, 3, 64), "Qwen3-8B": (36, 8, 128), "Llama-3.1-70B": (80, 8, 128)}
HEADS, KV_HEADS, HEAD_SIZE, NUMBER_BYTES = 9, 3, 64, 4


@model(
    formula="prefill: pairs = n (n + 1) / 2, decode: pairs = n\n"
    "time = base + per pair × pairs\n"
    "roofline = max(4 × head size × heads × pairs / flop rate, bytes / copy rate)",
    inputs=[
        Input("backend", "Kernel", ["sdpa-flash", "sdpa-math", "vllm"]),
        Input("phase", "Phase", ["prefill", "decode"]),
        Input(
            "tokens",
            "Tokens, n",
            [128, 256, 512, 1024, 2048, 4096, 8192, 16384],
            default=2048,
            unit="tokens",
        ),
    ],
    outputs=[
        Output("ms", "Time of a call, one layer", "ms", ".3f", within=3.0),
        Output("roof_ms", "By the roofline at least", "ms", ".3f"),
        Output("share_percent", "Share of the roofline", "%", ".0f"),
        Output("intensity", "Work for each byte", "flop", ".1f"),
    ],
    constants="kernel_fit",
    check="kernel_points",
)
def kernel(
    phase: str, tokens: int, base_ms: float, per_pair_ns: float, gflop_s: float, gbyte_s: float
) -> dict[str, float]:
    """How long does attention take as the text grows?"""
    queries = tokens if phase == "prefill" else 1
    pairs = tokens * (tokens + 1) / 2 if phase == "prefill" else tokens
    ms = base_ms + per_pair_ns * pairs / 1e6
    flop = 4 * HEAD_SIZE * HEADS * pairs
    moved = 2 * HEAD_SIZE * NUMBER_BYTES * (HEADS * queries + KV_HEADS * tokens)
    roof_ms = max(flop / gflop_s, moved / gbyte_s) / 1e6
    return {
        "ms": ms,
        "roof_ms": roof_ms,
        "share_percent": 100 * roof_ms / ms,
        "intensity": flop / moved,
    }


@model(
    formula="bytes of a token = 2 × layers × key heads × head size × bytes of a number\n"
    "pool = floor(memory / (block × bytes of a token)) × block",
    inputs=[
        Input("model", "Model", list(MODELS)),
        Input("number_bytes", "A number in the cache", [4, 2, 1], default=2, unit="bytes"),
        Input("pool_gib", "Memory for the cache", [1, 2, 4, 8, 16, 32, 64], default=1, unit="GiB"),
        Input("block_tokens", "Block", [1, 16, 128], default=128, unit="tokens"),
    ],
    outputs=[
        Output("pool_tokens", "The pool holds", "tokens", ",.0f", within=0.0),
        Output("token_bytes", "A token takes", "bytes", ",.0f"),
        Output("users", "Conversations of 4,096 tokens", "", ",.0f"),
    ],
    constants="",
    check="pool_points",
)
def pool(model: str, number_bytes: int, pool_gib: float, block_tokens: int) -> dict[str, Any]:
    """How many tokens fit, by the precision of the cache?"""
    layers, kv_heads, head_size = MODELS[model]
    token_bytes = 2 * layers * kv_heads * head_size * number_bytes
    tokens = int(pool_gib * 2**30 // (block_tokens * token_bytes)) * block_tokens
    return {"pool_tokens": tokens, "token_bytes": token_bytes, "users": tokens // 4096}
