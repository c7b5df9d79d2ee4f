"""Small models of Episode 07: a decode step in four layouts, and the pool of each layout.

The first one knows what a step costs on one core, what bare processes pay to talk, and from one
level of one layout how much a second core does not shorten. The other layouts follow from it.
"""

from harness.render.model import Input, Output, model

BLOCK = 128  # tokens: vLLM's block on a CPU
HEAD_SIZE, BYTES = 64, 4
STAGE_OF = {12: 10, 6: 5, 32: 16}  # layers of the fuller stage


@model(
    formula="one core: step = base + per request × n\n"
    "two threads: kept + (step of one core − kept) / 2\n"
    "tensor parallel: the same + talk, talk = talk base + talk per request × n\n"
    "two copies: the step of one core with n / 2",
    inputs=[
        Input(
            "layout",
            "Layout",
            ["one core", "two threads", "tensor parallel", "two copies"],
            default="tensor parallel",
        ),
        Input("in_flight", "Requests in flight, n", [1, 2, 4, 6, 8, 12, 16, 24, 32], default=8),
    ],
    outputs=[
        Output("step_ms", "A decode step", "ms", ",.1f", within=0.17),
        Output("tok_per_s", "Tokens decoded", "a second", ",.0f"),
        Output("talk_percent", "Of a step, talk", "%", ".1f"),
        Output("times", "Against one core with as many", "times", ".2f"),
    ],
    constants="model_fit",
    check="model_points",
)
def layouts(
    layout: str,
    in_flight: int,
    base_ms: float,
    per_request_ms: float,
    kept_ms: float,
    talk_base_ms: float,
    talk_request_ms: float,
) -> dict[str, float]:
    """What does a step cost in each layout?"""
    one_ms = base_ms + per_request_ms * in_flight
    talk_ms = talk_base_ms + talk_request_ms * in_flight if layout == "tensor parallel" else 0.0
    step_ms = {
        "one core": one_ms,
        "two copies": base_ms + per_request_ms * max(in_flight / 2, 1),
    }.get(layout, (one_ms + kept_ms) / 2 + talk_ms)
    return {
        "step_ms": step_ms,
        "tok_per_s": 1000 * in_flight / step_ms,
        "talk_percent": 100 * talk_ms / step_ms,
        "times": one_ms / step_ms,
    }


@model(
    formula="a token in the pool = 2 × layers × KV heads × head size × bytes\n"
    "a process keeps all of it (one copy), half of its heads (tensor parallel),\n"
    "or its own layers (pipeline: 5 of 6, 10 of 12, 16 of 32 in the fuller stage);\n"
    "blocks = floor(memory / (block × what it keeps))\n"
    "pool = copies × blocks × block",
    inputs=[
        Input(
            "layout",
            "Layout",
            ["one copy", "tensor parallel", "pipeline", "two copies"],
            default="tensor parallel",
        ),
        Input("memory_gib", "Memory for it, each process", [1, 2, 4, 8, 16], unit="GiB"),
        Input("layers", "Layers", [6, 12, 32], default=12),
        Input("kv_heads", "KV heads", [2, 4, 8], default=4),
    ],
    outputs=[
        Output("pool_tokens", "Pool of the layout", "tokens", ",.0f", within=0.0),
        Output("one_tokens", "The most that one request can use", "tokens", ",.0f"),
        Output("copies", "Prefix caches", "", ".0f"),
    ],
    check="pool_points",
)
def pool(layout: str, memory_gib: int, layers: int, kv_heads: int) -> dict[str, float]:
    """How many tokens fit into the pool of each layout?"""
    kept = {"tensor parallel": layers / 2, "pipeline": STAGE_OF[layers]}.get(layout, layers)
    copies = 2 if layout == "two copies" else 1
    block_bytes = BLOCK * 2 * kept * kv_heads * HEAD_SIZE * BYTES
    tokens = (memory_gib << 30) // int(block_bytes) * BLOCK
    return {"pool_tokens": copies * tokens, "one_tokens": tokens, "copies": copies}
