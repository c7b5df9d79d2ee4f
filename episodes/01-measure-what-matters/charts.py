"""Charts of Episode 01: rows of queries.sql -> plotly figures."""

from typing import Any

import plotly.graph_objects as go
from pandas import DataFrame

from harness.render import theme


def closed(closed_throughput: DataFrame, closed_latency: DataFrame, tier: str) -> go.Figure:
    """Throughput, time per output token and time to first token by requests in flight."""
    fig = theme.panes(
        "Requests in flight",
        ["Output tokens/s", "TPOT p50, ms", "TTFT p50, s"],
        height=640,
    )
    for engine, part in closed_throughput.groupby("engine"):
        band = (part.tok_low_per_s, part.tok_high_per_s)
        _line(fig, engine, tier, part.in_flight, part.output_tok_per_s, band, "y")
    for metric, axis, unit in (("tpot", "y2", 1), ("ttft", "y3", 1000)):
        rows = closed_latency[closed_latency.metric == metric]
        for engine, part in rows.groupby("engine"):
            band = (part.low_ms / unit, part.high_ms / unit)
            _line(fig, engine, tier, part.in_flight, part.p50_ms / unit, band, axis)
    fig.update_layout(
        xaxis_type="log", xaxis_tickvals=sorted(closed_latency.in_flight.unique().tolist())
    )
    for axis in ("yaxis", "yaxis2", "yaxis3"):
        fig.update_layout({axis: {"rangemode": "tozero"}})
    return fig


def open_loop(open_latency: DataFrame, tier: str) -> go.Figure:
    """Time to first token, per output token and of the whole request by the rate offered."""
    fig = theme.panes(
        "Offered rate, % of capacity",
        ["TTFT p50, s", "TPOT p50, ms", "whole request p50, s"],
        height=640,
    )
    metrics = (
        ("ttft_from_scheduled", "y", 1000),
        ("tpot", "y2", 1),
        ("e2e_from_scheduled", "y3", 1000),
    )
    for metric, axis, unit in metrics:
        for engine, part in open_latency[open_latency.metric == metric].groupby("engine"):
            band = (part.low_ms / unit, part.high_ms / unit)
            _line(fig, engine, tier, part.capacity_percent, part.p50_ms / unit, band, axis)
    for axis in ("yaxis", "yaxis2", "yaxis3"):
        fig.update_layout({axis: {"rangemode": "tozero"}})
    return fig


def trade_off(rows: DataFrame, tier: str) -> go.Figure:
    """What a level delivers against what each token waits for: right and low is better."""
    fig = theme.figure("Output tokens/s, all requests", "TPOT p50, ms")
    for (engine, sweep), part in rows.groupby(["engine", "sweep"]):
        style = theme.style(engine, tier)
        style["name"] = f"{theme.name(engine)}, {sweep} loop"
        if sweep == "open":
            style["marker"] = style["marker"] | {"symbol": "cross"}
        unit = " in flight" if sweep == "closed" else " % of capacity"
        fig.add_scatter(
            x=part.output_tok_per_s,
            y=part.tpot_ms,
            mode="lines+markers" if sweep == "closed" else "markers",
            text=[f"{level}{unit}" for level in part.level],
            hovertemplate="%{text}: %{x:.0f} tokens/s, %{y:.0f} ms<extra></extra>",
            **style,
        )
    fig.update_layout(xaxis_rangemode="tozero", yaxis_rangemode="tozero")
    return fig


def slogans(slogan: DataFrame) -> go.Figure:
    """The same recording under eight definitions of tokens per second."""
    fig = theme.figure("Tokens per second", "", height=420)
    order = slogan.drop_duplicates("number").sort_values("number", ascending=False)
    for engine, part in slogan.groupby("engine"):
        part = part.sort_values("number", ascending=False)
        fig.add_bar(
            x=part.tok_per_s,
            y=part.definition,
            orientation="h",
            marker={"color": theme.colour(engine)},
            name=theme.name(engine),
        )
    said = float(slogan.said.iloc[0])
    fig.add_scatter(
        x=[said, said],
        y=[order.definition.iloc[0], order.definition.iloc[-1]],
        mode="lines",
        line={"color": theme.REFERENCE, "dash": "dash", "width": 2},
        name="the slogan",
    )
    fig.update_layout(barmode="group", bargap=0.25)
    return fig


def timeline_vllm(timeline: DataFrame) -> go.Figure:
    """vLLM under arriving requests: latency, queue, cache and core on one axis of time."""
    return _timeline(timeline, "vllm")


def timeline_sglang(timeline: DataFrame) -> go.Figure:
    """SGLang under arriving requests: latency, queue, cache and core on one axis of time."""
    return _timeline(timeline, "sglang")


# Panes from the top: title, and the series in it by name. A pane without rows is left out.
PANES = (
    ("TTFT, s", {"ttft": "a request, at the time it was due"}),
    ("Requests", {"running": "running", "waiting": "waiting"}),
    ("KV tokens", {"kv_used_tokens": "KV cache in use"}),
    ("Core, %", {"engine_core": "engine's processes"}),
    ("SM, MHz", {"sm_clock_mhz": "SM clock"}),
    ("Power, W", {"power_w": "power"}),
    ("Memory, GB", {"memory_gb": "device memory"}),
    ("°C", {"temperature_c": "temperature"}),
)


def _timeline(rows: DataFrame, engine: str) -> go.Figure:
    rows = rows[rows.engine == engine]
    there = [pane for pane in PANES if rows.series.isin(list(pane[1])).any()]
    x = "Time since the start, s"
    fig = theme.panes(x, [title for title, _ in there], height=180 * len(there), gap=0.06)
    levels = sorted(rows.capacity_percent.unique().tolist())
    for number, level in enumerate(levels):
        for place, (_, names) in enumerate(there):
            for name, said in names.items():
                part = rows[(rows.capacity_percent == level) & (rows.series == name)]
                fig.add_scatter(
                    x=part.at_s,
                    y=part.value,
                    mode="markers" if name == "ttft" else "lines",
                    name=said,
                    yaxis=f"y{place + 1}" if place else "y",
                    meta={"level": number},
                    **_look(engine, name),
                )
    for place in range(len(there)):
        fig.update_layout({f"yaxis{place + 1 if place else ''}": {"rangemode": "tozero"}})
    theme.levels(fig, [f"{level:.0f} % of capacity" for level in levels], max(len(levels) - 2, 0))
    return fig


def _look(engine: str, series: str) -> dict[str, Any]:
    colours = {
        "running": theme.colour(engine),
        "waiting": theme.PHASE_COLOUR["queue"],
        "kv_used_tokens": theme.PHASE_COLOUR["decode"],
    }
    if series == "ttft":
        return {"marker": {"color": theme.PHASE_COLOUR["prefill"], "size": 6}}
    dash = "dash" if series == "waiting" else "solid"
    colour = colours.get(series, theme.REFERENCE)
    return {"line": {"color": colour, "dash": dash, "shape": "hv", "width": 2}}


def _line(
    fig: go.Figure, engine: str, tier: str, x: Any, y: Any, band: tuple[Any, Any], axis: str
) -> None:
    low, high = band
    fig.add_scatter(
        x=x,
        y=y,
        error_y={
            "type": "data",
            "symmetric": False,
            "array": high - y,
            "arrayminus": y - low,
            "thickness": 1.2,
            "width": 4,
        },
        mode="lines+markers",
        yaxis=axis,
        showlegend=axis == "y",
        **theme.style(engine, tier),
    )
