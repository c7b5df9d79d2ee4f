"""The small model of Episode 00: the prediction of the page, with its constants fitted."""

from harness.render.model import Input, Output, model


@model(
    formula="first token = base + per token × prompt × (1 + attention × prompt)\n"
    "step = step without a cache × (1 + cache × (prompt + answer / 2))\n"
    "whole answer = first token + step × (answer − 1)",
    inputs=[
        Input("engine", "Engine", ["vllm", "sglang", "transformers"]),
        Input(
            "prompt_tokens",
            "Prompt",
            [32, 64, 128, 192, 256, 384, 512, 640, 768, 896, 1024],
            default=256,
            unit="tokens",
        ),
        Input("output_tokens", "Answer", [2, 8, 16, 32, 64, 96, 128], default=64, unit="tokens"),
    ],
    outputs=[
        Output("ttft_ms", "Until the first token", "ms", ",.0f", within=0.2),
        Output("answer_s", "Whole answer", "s", ".1f", within=0.25),
        Output("prompt_percent", "First token's share", "%", ".0f"),
    ],
    constants="try_fit",
    check="try_points",
)
def one_request(
    prompt_tokens: float,
    output_tokens: float,
    base_ms: float,
    per_token_ms: float,
    attention_per_token: float,
    step_ms: float,
    cache_per_token: float,
) -> dict[str, float]:
    """How long does one request take, alone on the machine?"""
    ttft_ms = base_ms + per_token_ms * prompt_tokens * (1 + attention_per_token * prompt_tokens)
    held_tokens = prompt_tokens + output_tokens / 2  # in the cache, in the middle of the answer
    decode_ms = step_ms * (1 + cache_per_token * held_tokens) * (output_tokens - 1)
    return {
        "ttft_ms": ttft_ms,
        "answer_s": (ttft_ms + decode_ms) / 1000,
        "prompt_percent": 100 * ttft_ms / (ttft_ms + decode_ms),
    }
