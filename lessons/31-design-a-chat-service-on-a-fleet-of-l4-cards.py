"""The calculator of the card on a fleet of L4 cards: arithmetic over a datasheet, no recording."""

from math import ceil

from harness.render.model import Input, Output, model

# An L4 by its datasheet, dense: bytes and multiplications with additions a second.
BYTES_PER_S = 300e9
FLOP_PER_S = {"FP8": 242e12, "BF16": 121e12}
# An 8B-class model: what a step reads of the weights, and what one token keeps in the KV cache.
READ_BYTES = {"FP8": 8.03e9, "BF16": 15.0e9}
POOL_TOKENS = {"FP8": 90_000, "BF16": 37_000}
PARAMETERS, KV_BYTES = 8.03e9, 131_072
# Assumed: the shares of bandwidth and of arithmetic that an engine reaches.
BANDWIDTH_SHARE, COMPUTE_SHARE = 0.8, 0.4
PROMPT, ANSWER = 1500, 300  # tokens
HELD = PROMPT + ANSWER // 2  # by a user on average
PEAK_PER_S, LOAD_SHARE = 10, 0.7


@model(
    formula="step = (weights + users × KV of a user) / bandwidth\n"
    "a request's share of a card = answer × step / users + uncached prompt / prefill speed\n"
    "TPOT = users × share / answer\n"
    "cards = peak / (requests a second of one card × share of its capacity that is used)",
    inputs=[
        Input("weights", "Weights", ["FP8", "BF16"]),
        Input("users", "Users a card at once", [4, 8, 16, 24, 32, 48, 64], default=8),
        Input("cached_tokens", "Of the prompt, in the cache", [0, 500, 1000], unit="tokens"),
        Input("clock_percent", "Clock, of the highest", [50, 75, 100], default=100, unit="%"),
    ],
    outputs=[
        Output("tpot_ms", "TPOT", "ms", ".0f"),
        Output("per_s", "A card", "requests/s", ".2f"),
        Output("cards", "Cards for the peak", "", ".0f"),
        Output("pool", "Users that the pool holds", "", ".0f"),
    ],
)
def fleet(
    weights: str, users: int, cached_tokens: int, clock_percent: float
) -> dict[str, float | str]:
    """How many cards does the service need?"""
    bandwidth = BANDWIDTH_SHARE * BYTES_PER_S
    step_s = (READ_BYTES[weights] + users * HELD * KV_BYTES) / bandwidth
    flop_per_s = COMPUTE_SHARE * FLOP_PER_S[weights] * clock_percent / 100
    prefill_s = 2 * PARAMETERS * (PROMPT - cached_tokens) / flop_per_s
    share_s = ANSWER * step_s / users + prefill_s
    return {
        "tpot_ms": 1000 * users * share_s / ANSWER,
        "per_s": 1 / share_s,
        "cards": ceil(PEAK_PER_S * share_s / LOAD_SHARE),
        "pool": POOL_TOKENS[weights] // HELD,
    }
