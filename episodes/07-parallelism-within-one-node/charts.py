"""Charts of Episode 07: rows of queries.sql -> plotly figures."""

from typing import Any

import plotly.graph_objects as go
from pandas import DataFrame, Series

from harness.render import theme

# One engine in five layouts: its colour in five strengths would not be told apart, so each layout
# has a colour of the phases or of the references, and a symbol of its own.
LAYOUTS = {
    "vllm": ("one copy, one core", theme.REFERENCE, "circle"),
    "vllm-threads": ("one copy, two threads", theme.ENGINE_COLOUR["vllm"], "square"),
    "vllm-tp": ("tensor parallel", theme.PHASE_COLOUR["decode"], "triangle-up"),
    "vllm-pp": ("pipeline", theme.PHASE_COLOUR["prefill"], "diamond"),
    "vllm-dp": ("two copies", theme.ENGINE_COLOUR["transformers"], "x"),
}


def five_layouts(load: DataFrame) -> go.Figure:
    """Throughput, and the time of a token, by layout: with one request and with eight."""
    fig = theme.panes("", ["Output tokens/s", "TPOT p50, ms"], height=560)
    levels = [level for level in sorted(load.in_flight.unique()) if level != 4]
    for level in levels:
        rows = load[load.in_flight == level]
        names = [LAYOUTS[variant][0] for variant in rows.variant]
        colour = theme.fade(theme.ENGINE_COLOUR["vllm"], 0.45 if level == levels[0] else 1.0)
        for axis, y, low, high in (
            ("y", rows.tok_per_s, rows.low, rows.high),
            ("y2", rows.tpot_ms, rows.tpot_low_ms, rows.tpot_high_ms),
        ):
            fig.add_bar(
                x=names,
                y=y,
                error_y=_interval(y, low, high),
                yaxis=axis,
                marker={"color": colour},
                name=f"{level} in flight",
                legendgroup=str(level),
                showlegend=axis == "y",
            )
    fig.update_layout(barmode="group", bargap=0.3)
    return fig


def all_reduce(collectives: DataFrame) -> go.Figure:
    """Time of a bare all-reduce between two pinned processes, by its size."""
    fig = theme.figure("Size, KiB", "All-reduce, µs", log_x=True, log_y=True)
    reduces = collectives[collectives.op == "all_reduce"]
    for backend, said, colour in (
        ("gloo", "gloo, through sockets", theme.ENGINE_COLOUR["sglang"]),
        ("shm", "vLLM's, through shared memory", theme.ENGINE_COLOUR["vllm"]),
    ):
        rows = reduces[reduces.backend == backend]
        fig.add_scatter(
            x=rows.size_kib,
            y=rows.took_us,
            error_y=_interval(rows.took_us, rows.low_us, rows.high_us),
            mode="lines+markers",
            line={"color": colour, "width": 2, "dash": "solid" if backend == "shm" else "dash"},
            marker={"color": colour, "size": 7},
            name=said,
        )
    return fig


def steps(step: DataFrame, talk: DataFrame) -> go.Figure:
    """A decode step by requests in it, by layout, and what tensor parallelism was predicted as."""
    fig = theme.figure("Requests in the step", "Decode step, ms", height=420)
    for variant, (said, colour, symbol) in LAYOUTS.items():
        if variant == "vllm-pp":
            continue
        rows = step[(step.variant == variant) & (step.repeats == step.repeats.max())]
        fig.add_scatter(
            x=rows.decode_requests,
            y=rows.step_ms,
            error_y=_interval(rows.step_ms, rows.low_ms, rows.high_ms),
            mode="lines+markers",
            line={"color": colour, "width": 1.5},
            marker={"color": colour, "symbol": symbol, "size": 8},
            name=said,
        )
    fig.add_scatter(
        x=talk.batch,
        y=talk.predicted_ms,
        mode="lines",
        line={"color": theme.PHASE_COLOUR["decode"], "dash": "dot", "width": 1.5},
        name="tensor parallel, predicted",
    )
    fig.update_layout(yaxis_rangemode="tozero", xaxis_rangemode="tozero", margin_t=88)
    return fig


def why_less(copies: DataFrame) -> go.Figure:
    """Eight requests: from one copy on one core to two copies, a loss at a time."""
    fig = theme.figure("Output tokens/s", "", height=340)
    row = copies.iloc[0]
    bars = (
        ("one copy, one core", row.one_8, theme.REFERENCE),
        ("twice that", row.twice, theme.fade(theme.REFERENCE, 0.45)),
        ("two cores with half a batch each", row.halves, theme.fade(theme.REFERENCE, 0.45)),
        ("two copies", row.dp_8, theme.ENGINE_COLOUR["vllm"]),
        ("one copy, two threads", row.threads_8, theme.ENGINE_COLOUR["vllm"]),
    )
    for said, value, colour in reversed(bars):
        fig.add_bar(
            x=[value], y=[said], orientation="h", marker={"color": colour}, showlegend=False
        )
    fig.update_layout(bargap=0.35, xaxis_rangemode="tozero", margin_l=210)
    return fig


def _interval(middle: Series, low: Series, high: Series) -> dict[str, Any]:
    bars = {"array": high - middle, "arrayminus": middle - low}
    return {"type": "data", "symmetric": False, "thickness": 1.2, "width": 4} | bars
