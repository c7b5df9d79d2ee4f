"""Charts of Episode 03: rows of queries.sql -> plotly figures."""

from typing import Any

import plotly.graph_objects as go
from pandas import DataFrame, Series

from harness.render import theme


def staircase(staircase: DataFrame, stairs: DataFrame, tier: str) -> go.Figure:
    """Share of a prompt that came from the cache, by the share of it that was seen before."""
    fig = theme.figure("Prompt seen before, %", "Prompt from the cache, %")
    block_of = {"vllm": max(stairs.block_tokens), "sglang": 1}
    for block, part in stairs.groupby("block_tokens", sort=False):
        engine = next((name for name, of in block_of.items() if of == block), "")
        fig.add_scatter(
            x=part.shared_percent,
            y=part.cached_percent,
            mode="lines",
            line={
                "color": theme.colour(engine),
                "dash": "solid" if engine else "dot",
                "width": 2 if engine else 1.5,
                "shape": "linear" if block == 1 else "hv",
            },
            name=f"{theme.name(engine) if engine else 'GPU'}: block {block}",
        )
    for engine, part in staircase.groupby("engine", sort=False):
        fig.add_scatter(
            x=part.shared_percent,
            y=part.cached_percent,
            mode="markers",
            text=part.requests,
            hovertemplate="%{x:.1f} % seen, %{y:.1f} % from the cache: %{text} requests"
            "<extra></extra>",
            marker=theme.style(engine, tier)["marker"] | {"size": 12 if engine == "vllm" else 7},
            name=f"{theme.name(engine)}, recorded",
        )
    fig.update_layout(xaxis_rangemode="tozero", yaxis_rangemode="tozero", height=460)
    fig.update_layout(margin_t=72)
    return fig


def ratio(ratio_ttft: DataFrame, tier: str) -> go.Figure:
    """Time to first token and requests per second, by the share of the prompt seen before."""
    fig = theme.panes("Prompt seen before, %", ["TTFT p50, ms", "Requests/s, alone"], height=560)
    for engine, part in ratio_ttft.groupby("engine", sort=False):
        fig.add_scatter(
            x=part.shared_percent,
            y=part.predicted_ms,
            mode="lines",
            line={"color": theme.colour(engine), "dash": "dot", "width": 1.5},
            name=f"{theme.name(engine)}, predicted",
        )
        fig.add_scatter(
            x=part.shared_percent,
            y=part.ttft_ms,
            error_y=_interval(part.ttft_ms, part.low_ms, part.high_ms),
            mode="markers",
            marker=theme.style(engine, tier)["marker"],
            name=f"{theme.name(engine)}, recorded",
        )
        fig.add_scatter(
            x=part.shared_percent,
            y=part.requests_per_s,
            mode="lines+markers",
            yaxis="y2",
            showlegend=False,
            **theme.style(engine, tier),
        )
    fig.update_layout(yaxis_rangemode="tozero", yaxis2_rangemode="tozero", margin_t=60)
    return fig


def knee(rows: DataFrame, tier: str) -> go.Figure:
    """Throughput by requests in flight, with new and with repeated prompts, and their ratio."""
    fig = theme.panes("Requests in flight", ["Output tokens/s", "Repeated / new"], height=560)
    for engine, part in rows.groupby("engine", sort=False):
        style = theme.style(engine, tier)
        for kind, said in (("fresh", "new prompts"), ("repeated", "repeated prompts")):
            rate = part[f"{kind}_tok_per_s"]
            look = {"dash": "solid" if kind == "fresh" else "dot"}
            symbol = {} if kind == "fresh" else {"symbol": "square"}
            fig.add_scatter(
                x=part.in_flight,
                y=rate,
                error_y=_interval(rate, part[f"{kind}_low"], part[f"{kind}_high"]),
                mode="lines+markers",
                line=style["line"] | look,
                marker=style["marker"] | symbol,
                name=f"{theme.name(engine)}, {said}",
            )
        fig.add_scatter(
            x=part.in_flight,
            y=part.times,
            error_y=_interval(part.times, part.times_low, part.times_high),
            mode="lines+markers",
            yaxis="y2",
            showlegend=False,
            **style,
        )
    levels = sorted(rows.in_flight.unique().tolist())
    fig.update_layout(xaxis_type="log", xaxis_tickvals=levels, margin_t=96)
    fig.update_layout(yaxis_rangemode="tozero", yaxis2_rangemode="tozero")
    return fig


def _interval(middle: Series, low: Series, high: Series) -> dict[str, Any]:
    bars = {"array": high - middle, "arrayminus": middle - low}
    return {"type": "data", "symmetric": False, "thickness": 1.2, "width": 4} | bars
