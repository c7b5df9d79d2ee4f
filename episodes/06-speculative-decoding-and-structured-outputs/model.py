"""Small models of Episode 06: what acceptance by position brings, and what load takes away.

Both know one thing: a pass gives 1 + a1 + ... + ak tokens, and costs more the more it checks.
"""

from harness.render.model import Input, Output, model


@model(
    formula="tokens of a pass = 1 + a1 + ... + ak, ai = share of proposals accepted up to place i\n"
    "time of a pass = base + each × k\n"
    "time of a token = time of a pass / tokens of a pass",
    inputs=[
        Input("method", "Proposals by", ["draft", "eagle"]),
        Input("kind", "Text", ["edit", "template", "prose"]),
        Input("depth", "Tokens proposed at a time, k", [1, 2, 3, 4, 5, 6, 7], default=3),
    ],
    outputs=[
        Output("tokens_per_pass", "Tokens of a pass", "", ".2f", within=0.2),
        Output("token_ms", "Time of a token", "ms", ".1f", within=0.35),
        Output("times", "Against no proposals", "times as fast", ".2f"),
        Output("adds", "What the last place adds", "tokens", ".2f"),
    ],
    constants="depth_fit",
    check="depth_points",
)
def depth(
    depth: int,
    a1: float,
    a2: float,
    a3: float,
    a4: float,
    a5: float,
    a6: float,
    a7: float,
    base_ms: float,
    each_ms: float,
    plain_ms: float,
) -> dict[str, float]:
    """How many tokens should be guessed ahead?"""
    accepted = [a1, a2, a3, a4, a5, a6, a7][: int(depth)]
    tokens = 1 + sum(accepted)
    token_ms = (base_ms + each_ms * depth) / tokens
    return {
        "tokens_per_pass": tokens,
        "token_ms": token_ms,
        "times": plain_ms / token_ms,
        "adds": accepted[-1],
    }


@model(
    formula="time of a pass = base + each × requests in flight\n"
    "time of a token = time of a pass / tokens of a pass\n"
    "break-even: tokens of a pass = time of a pass / time of a plain pass",
    inputs=[
        Input("method", "Proposals by", ["ngram", "draft", "eagle", "vllm"]),
        Input("in_flight", "Requests in flight", [1, 2, 3, 4, 6, 8, 12, 16], default=4),
    ],
    outputs=[
        Output("token_ms", "Time of a token", "ms", ".0f", within=0.5),
        Output("pass_cost", "A pass, in plain passes", "", ".2f"),
        Output("tokens", "Tokens of a pass, as recorded", "", ".2f"),
        Output("times", "Against no proposals", "times as fast", ".2f"),
    ],
    constants="load_fit",
    check="load_points",
)
def load(
    in_flight: float,
    base_ms: float,
    each_ms: float,
    tokens_per_pass: float,
    plain_base_ms: float,
    plain_each_ms: float,
) -> dict[str, float]:
    """Where does it stop paying?"""
    pass_ms = base_ms + each_ms * in_flight
    plain_ms = plain_base_ms + plain_each_ms * in_flight
    return {
        "token_ms": pass_ms / tokens_per_pass,
        "pass_cost": pass_ms / plain_ms,
        "tokens": tokens_per_pass,
        "times": plain_ms / pass_ms * tokens_per_pass,
    }
