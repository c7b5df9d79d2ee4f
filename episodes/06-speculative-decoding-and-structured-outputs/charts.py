"""Charts of Episode 06: rows of queries.sql -> plotly figures."""

from typing import Any

import plotly.graph_objects as go
from pandas import DataFrame, Series

from harness.render import theme

KINDS = ["edit", "template", "prose"]
NAMES = {
    "vllm": "No proposals",
    "ngram": "n-grams of the prompt",
    "draft": "Draft model",
    "eagle": "EAGLE-3 head",
}
LOOK = {  # a colour, a dash and a symbol each
    "vllm": (theme.REFERENCE, "dot", "circle"),
    "ngram": (theme.PHASE_COLOUR["prefill"], "dash", "square"),
    "draft": (theme.PHASE_COLOUR["decode"], "dashdot", "triangle-up"),
    "eagle": (theme.ENGINE_COLOUR["vllm"], "solid", "diamond"),
}


def acceptance(acceptance: DataFrame, tier: str) -> go.Figure:
    """Share of proposals accepted up to each place, a pane a kind of text."""
    fig = theme.panes("Place in the proposal", [f"{kind}, %" for kind in KINDS], height=620)
    rows = acceptance[~acceptance.untrained.astype(bool)]
    for place, kind in enumerate(KINDS, start=1):
        of_kind = rows[rows.kind == kind]
        for method, part in of_kind.groupby("method", sort=False):
            deepest = part[part.depth == part.depth.max()].sort_values("position")
            fig.add_scatter(
                x=deepest.position,
                y=deepest.accepted_percent,
                yaxis=_axis(place),
                mode="lines+markers",
                showlegend=place == 1,
                **_style(method),
            )
    for place in range(1, len(KINDS) + 1):
        fig.update_layout({f"yaxis{place if place > 1 else ''}": {"range": [0, 103]}})
    fig.update_layout(margin_t=72)
    return fig


def alone(alone: DataFrame, tier: str) -> go.Figure:
    """How many times faster than the plain engine, by kind of text, with the tokens of a pass."""
    fig = theme.panes("Kind of text", ["Times as fast", "Tokens of a pass"], height=520)
    for method, part in alone[alone.method != "vllm"].groupby("method", sort=False):
        fig.add_scatter(
            x=part.kind,
            y=part.times,
            error_y=_interval(part.times, part.times_low, part.times_high),
            mode="markers",
            **_style(method),
        )
        fig.add_scatter(
            x=part.kind,
            y=part.tokens_per_pass,
            yaxis="y2",
            mode="markers",
            showlegend=False,
            **_style(method),
        )
    fig.add_scatter(x=KINDS, y=[1] * len(KINDS), mode="lines", **_style("vllm"))
    fig.update_layout(yaxis_rangemode="tozero", yaxis2_rangemode="tozero", margin_t=72)
    return fig


def together(together: DataFrame, tier: str) -> go.Figure:
    """Throughput and its ratio to the plain engine, by requests in flight."""
    fig = theme.panes("Requests in flight", ["Output tokens/s", "Times as many"], height=560)
    for method, part in together.groupby("method", sort=False):
        fig.add_scatter(
            x=part.in_flight,
            y=part.tok_per_s,
            error_y=_interval(part.tok_per_s, part.low, part.high),
            mode="lines+markers",
            **_style(method),
        )
        fig.add_scatter(
            x=part.in_flight,
            y=part.times,
            error_y=_interval(part.times, part.times_low, part.times_high)
            if method != "vllm"
            else None,
            mode="lines" if method == "vllm" else "lines+markers",
            yaxis="y2",
            showlegend=False,
            **_style(method),
        )
    levels = sorted(together.in_flight.unique().tolist())
    fig.update_layout(xaxis_type="log", xaxis_tickvals=levels, margin_t=72)
    fig.update_layout(yaxis_rangemode="tozero", yaxis2_rangemode="tozero")
    return fig


def depth(depth: DataFrame, depth_gain: DataFrame, tier: str) -> go.Figure:
    """Tokens of a pass at every k, computed and recorded, and the time of a token, on prose."""
    fig = theme.panes(
        "k, tokens proposed at a time", ["Tokens of a pass", "ms a token"], height=560
    )
    for method, part in depth_gain[depth_gain.kind == "prose"].groupby("method", sort=False):
        line = _style(method)["line"] | {"dash": "dot", "width": 1.5}
        fig.add_scatter(
            x=part.depth,
            y=part.tokens_per_pass,
            mode="lines",
            line=line,
            name=f"{NAMES[method]}, computed",
        )
    for method, part in depth[depth.kind == "prose"].groupby("method", sort=False):
        for axis, column in (("y", "tokens_per_pass"), ("y2", "token_ms")):
            fig.add_scatter(
                x=part.depth,
                y=part[column],
                yaxis=axis,
                mode="markers" if axis == "y" else "lines+markers",
                showlegend=axis == "y",
                **_style(method),
            )
    fig.update_layout(yaxis_rangemode="tozero", yaxis2_rangemode="tozero", margin_t=96)
    return fig


def bound(bound_cost: DataFrame, tier: str) -> go.Figure:
    """Wait for the first token under a constraint: its first prompt and its second."""
    fig = theme.figure("Constraint and library", "Time to first token, ms")
    rows = bound_cost.assign(
        place=bound_cost.form
        + "<br>"
        + bound_cost.variant.where(bound_cost.variant != "vllm", "xgrammar").where(
            bound_cost.extra == "bound", "free"
        )
    )
    for column, said, symbol, colour in (
        ("first_ms", "first prompt under it", "circle", theme.ENGINE_COLOUR["vllm"]),
        ("again_ms", "second prompt", "square", theme.PHASE_COLOUR["prefill"]),
    ):
        fig.add_scatter(
            x=rows.place,
            y=rows[column],
            mode="markers",
            name=said,
            marker={"color": colour, "symbol": symbol, "size": 9},
        )
    fig.update_layout(yaxis_rangemode="tozero", height=440)
    return fig


def training(training: DataFrame, tier: str) -> go.Figure:
    """Loss of the two trained proposers by tokens of answers seen."""
    fig = theme.figure("Tokens of answers seen", "Loss, nats a token")
    for name, part in training.groupby("model", sort=False):
        method = "eagle" if "eagle" in name else "draft"
        fig.add_scatter(x=part.tokens_seen, y=part.loss, mode="lines", **_style(method))
    fig.update_layout(yaxis_rangemode="tozero")
    return fig


def _axis(place: int) -> str:
    return "y" if place == 1 else f"y{place}"


def _style(method: str) -> dict[str, Any]:
    colour, dash, symbol = LOOK[method]
    return {
        "name": NAMES[method],
        "legendgroup": method,
        "line": {"color": colour, "dash": dash, "width": 2},
        "marker": {"color": colour, "symbol": symbol, "size": 8},
    }


def _interval(middle: Series, low: Series, high: Series) -> dict[str, Any]:
    bars = {"array": high - middle, "arrayminus": middle - low}
    return {"type": "data", "symmetric": False, "thickness": 1.2, "width": 4} | bars
