"""Charts of Episode 05: rows of queries.sql -> plotly figures."""

from typing import Any

import plotly.graph_objects as go
from pandas import DataFrame

from harness.render import theme

# PyTorch's own kernels have the colour of Transformers, which calls them; dashes tell them apart.
BACKENDS = {
    "sdpa-flash": ("transformers", "solid", "circle", "PyTorch, flash"),
    "sdpa-math": ("transformers", "dot", "square", "PyTorch, math"),
    "vllm": ("vllm", "solid", "circle", "vLLM, CPU_ATTN"),
    "vllm-fp8kv": ("vllm", "dot", "square", "vLLM, cache in FP8"),
}
PRECISIONS = {
    "fp16": ("transformers", "dot", "float16"),
    "bf16": ("transformers", "solid", "bfloat16"),
    "kv-fp8": ("vllm", "solid", "KV cache in FP8, e4m3"),
    "kv-fp8-e5m2": ("vllm", "dot", "KV cache in FP8, e5m2"),
    "int8": ("sglang", "dash", "int8"),
    "awq": ("sglang", "dot", "4 bits, zero points"),
    "w4a16": ("sglang", "solid", "4 bits"),
}


def roofline(roof_lines: DataFrame, roof_points: DataFrame, tier: str) -> go.Figure:
    """Rate reached by work for each byte, under what the core can do in 32 bits."""
    fig = theme.figure("Flop for each byte", "Gflop/s", log_x=True, log_y=True, height=480)
    line = roof_lines[roof_lines.dtype == "float32"]
    fig.add_scatter(
        x=line.flop_per_byte,
        y=line.gflop_s,
        mode="lines",
        line={"color": theme.REFERENCE, "width": 2},
        name="Roofline, 32 bits",
    )
    for backend, part in roof_points.groupby("backend", sort=False):
        if backend not in BACKENDS:
            continue
        engine, _, symbol, said = BACKENDS[backend]
        fig.add_scatter(
            x=part.flop_per_byte,
            y=part.gflop_s,
            mode="markers",
            text=part.phase + ", " + part.kv_tokens.astype(str) + " tokens",
            hovertemplate="%{text}: %{y:.1f} Gflop/s<extra></extra>",
            marker={"color": theme.colour(engine), "symbol": symbol, "size": 8},
            name=said,
        )
    fig.update_layout(margin_t=72)
    return fig


def lengths(attention: DataFrame, tier: str) -> go.Figure:
    """Time of one call by the number of tokens: prefill above, decode below. 32 bits."""
    fig = theme.panes("Tokens", ["Prefill, ms", "Decode, ms"], height=620)
    part = attention[(attention.dtype == "float32") & (attention["ran"] != "not verified")]
    for (backend, phase), some in part.groupby(["backend", "phase"], sort=False):
        if backend not in BACKENDS:
            continue
        engine, dash, symbol, said = BACKENDS[backend]
        fig.add_scatter(
            x=some.kv_tokens,
            y=some.ms,
            error_y=_interval(some),
            mode="lines+markers",
            line={"color": theme.colour(engine), "dash": dash, "width": 2},
            marker={"color": theme.colour(engine), "symbol": symbol, "size": 7},
            name=said,
            legendgroup=backend,
            showlegend=phase == "decode",
            yaxis="y" if phase == "prefill" else "y2",
        )
    ticks = sorted(part.kv_tokens.unique().tolist())
    fig.update_layout(xaxis_type="log", xaxis_tickvals=ticks, margin_t=96)
    fig.update_layout(yaxis_type="log", yaxis2_type="log")
    return fig


def spread(kl_spread: DataFrame, tier: str) -> go.Figure:
    """Of the tokens of the held-out texts, the share whose divergence is at most so much."""
    fig = theme.figure("Share of tokens, %", "Divergence at most, nats", log_y=True, height=460)
    for variant, part in kl_spread.groupby("variant", sort=False):
        if variant not in PRECISIONS:
            continue
        colour, dash, said = PRECISIONS[variant]
        shown = part[part.kl_nats > 0]
        fig.add_scatter(
            x=100 * shown.share,
            y=shown.kl_nats,
            mode="lines+markers",
            line={"color": theme.colour(colour), "dash": dash, "width": 2},
            marker={"color": theme.colour(colour), "size": 5},
            name=said,
        )
    fig.update_layout(margin_t=112)
    return fig


def _interval(part: DataFrame) -> dict[str, Any]:
    bars = {"array": part.high_ms - part.ms, "arrayminus": part.ms - part.low_ms}
    return {"type": "data", "symmetric": False, "thickness": 1.2, "width": 4} | bars
