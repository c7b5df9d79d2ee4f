"""The small model of Episode 01: a closed loop whose requests march in step."""

from harness.render.model import Input, Output, model


@model(
    formula="first token = base + prefill × in flight\n"
    "step = weights + own × in flight\n"
    "time of a request = first token + step × (answer − 1)\n"
    "throughput = in flight × answer / time of a request",
    inputs=[
        Input("engine", "Engine", ["vllm", "sglang"]),
        Input("in_flight", "In flight", [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16], default=4),
        Input("output_tokens", "Answer", [8, 16, 24, 48, 96], default=24, unit="tokens"),
    ],
    outputs=[
        Output("tok_per_s", "Output of all", "tokens/s", ".1f", within=0.3),
        Output("tpot_ms", "A step, so each token", "ms", ".0f", within=0.3),
        Output("ttft_ms", "Until the first token", "ms", ",.0f", within=0.2),
        Output("request_s", "Whole request", "s", ".2f", within=0.3),
    ],
    constants="try_fit",
    check="try_points",
)
def closed_loop(
    in_flight: float,
    output_tokens: float,
    base_ms: float,
    prefill_ms: float,
    weights_ms: float,
    own_ms: float,
) -> dict[str, float]:
    """What does one more request in flight bring, and what does it cost the others?"""
    ttft_ms = base_ms + prefill_ms * in_flight
    step_ms = weights_ms + own_ms * in_flight
    request_s = (ttft_ms + step_ms * (output_tokens - 1)) / 1000
    return {
        "tok_per_s": in_flight * output_tokens / request_s,
        "tpot_ms": step_ms,
        "ttft_ms": ttft_ms,
        "request_s": request_s,
    }
