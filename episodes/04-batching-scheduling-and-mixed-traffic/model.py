"""The small model of Episode 04: what a token budget does to those who wait."""

from math import ceil

from harness.render.model import Input, Output, model


@model(
    formula=(
        "a step takes base + per token × tokens in it\n"
        "steps = ceil(prompt / share), share being what a step has for the prompt: the budget, "
        "less the answers running where a step holds both, at most the cap on one prompt\n"
        "longest gap = one step; in SGLang without mixing, all steps of the prompt and the "
        "answers' own next one; with an interval, one of each"
    ),
    inputs=[
        Input("policy", "Scheduler", [
            "vLLM", "vLLM, prompts capped", "SGLang", "SGLang, mixed", "SGLang, interval",
        ]),
        Input(
            "budget_tokens", "Token budget", [64, 128, 256, 512, 1024, 2048, 4096],
            default=256, unit="tokens",
        ),
        Input(
            "prompt_tokens", "Long prompt", [256, 512, 1024, 2048], default=1024, unit="tokens"
        ),
        Input("running", "Answers running", [1, 4, 8, 16], default=4),
    ],
    outputs=[
        Output("steps", "Steps that the prompt takes", "", ".0f", within=0.0),
        Output("stall_ms", "Longest gap between two tokens", "ms", ",.0f", within=0.35),
        Output("long_ms", "Time to its first token", "ms", ",.0f", within=0.35),
    ],
    constants="model_fit",
    check="stall",
)  # fmt: skip
def token_budget(
    policy: str,
    budget_tokens: int,
    prompt_tokens: int,
    running: int,
    base_ms: float,
    per_token_ms: float,
    cap_tokens: int | None,
) -> dict[str, float]:
    """A long prompt among running answers: who waits how long?"""
    beside = 0 if policy in ("SGLang", "SGLang, interval") else running
    share = min(budget_tokens - beside, cap_tokens or budget_tokens)
    steps = ceil(prompt_tokens / share)
    all_ms = steps * base_ms + per_token_ms * (prompt_tokens + steps * beside)
    first_ms = base_ms + per_token_ms * (min(share, prompt_tokens) + beside)
    decode_ms = base_ms + per_token_ms * running
    stall_ms = {"SGLang": all_ms + decode_ms, "SGLang, interval": first_ms + decode_ms}
    return {"steps": steps, "stall_ms": stall_ms.get(policy, first_ms), "long_ms": all_ms}
