"""The small model of Episode 02: what a batch can gain when only a part of the work is shared."""

from harness.render.model import Input, Output, model


@model(
    formula="gain = 1 / ((1 − shared) + shared / in flight)\n"
    "throughput = throughput alone × gain\n"
    "ceiling = 1 / (1 − shared)",
    inputs=[
        Input("variant", "Runtime", ["vllm", "sglang", "transformers-batching", "transformers"]),
        Input("in_flight", "In flight", [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64], default=8),
    ],
    outputs=[
        Output("gain", "Times the tokens a second of one alone", "", ".2f", within=0.3),
        Output("tok_per_s", "Output of all", "tokens/s", ".1f", within=0.3),
        Output("shared_percent", "Work that a batch does once", "%", ".0f"),
        Output("ceiling", "Gain with endless company", "times", ".1f"),
    ],
    constants="try_fit",
    check="try_points",
)
def company(in_flight: float, shared_frac: float, alone_tok_per_s: float) -> dict[str, float]:
    """How much can company bring, and where does it end?"""
    gain = 1 / ((1 - shared_frac) + shared_frac / in_flight)
    return {
        "gain": gain,
        "tok_per_s": alone_tok_per_s * gain,
        "shared_percent": 100 * shared_frac,
        "ceiling": 1 / (1 - shared_frac),
    }
