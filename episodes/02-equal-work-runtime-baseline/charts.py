"""Charts of Episode 02: rows of queries.sql -> plotly figures."""

import plotly.graph_objects as go
from pandas import DataFrame

from harness.render import theme

BF16_STEP = 2.0 ** (4 - 7)  # between neighbouring numbers from 16 to 32: 7 bits after the first

NAME = {
    "transformers": "Transformers, generate()",
    "transformers-batching": "Transformers, batching",
    "transformers-batching-bf16": "Transformers, batching, 16 bits",
    "sglang-bf16": "SGLang, 16 bits",
    "vllm-fp32": "vLLM, 32 bits",
    "sglang-fp32": "SGLang, 32 bits",
}


def throughput(rows: DataFrame, tier: str) -> go.Figure:
    """Output tokens a second, one request at a time and several at once."""
    columns = ("output_tok_per_s", "tok_low_per_s", "tok_high_per_s")
    return _by_load(rows, columns, "Output tokens a second", tier)


def latency(rows: DataFrame, tier: str) -> go.Figure:
    """Time per output token of one request, one at a time and several at once."""
    return _by_load(rows, ("tpot_ms", "tpot_low_ms", "tpot_high_ms"), "TPOT p50, ms", tier)


def company(rows: DataFrame, tier: str) -> go.Figure:
    """Share of the prompts whose answer stays the same when others are in the batch."""
    fig = _figure("Requests in flight", "Same text as alone, % of prompts")
    for variant, part in rows.groupby("variant"):
        fig.add_scatter(
            x=[1, *part.in_flight],
            y=[100, *part.same_percent],
            mode="lines+markers",
            **_style(variant, tier),
        )
    fig.update_xaxes(tickvals=[1, *sorted(set(rows.in_flight))])
    fig.update_yaxes(range=[-3, 103])
    return fig


def near_ties(gaps: DataFrame, company_divergence: DataFrame, tier: str) -> go.Figure:
    """Gaps between the two likeliest tokens: of all tokens, and of those where answers part."""
    fig = _figure("Gap between the two likeliest tokens, nats", "Tokens with a smaller gap, %")
    for variant, part in gaps[gaps.gap > 0].groupby("variant"):
        fig.add_scatter(x=part.gap, y=part.percent, mode="lines", **_style(variant, tier))
    all_gaps = gaps[gaps.variant == "vllm"]
    parted = company_divergence.dropna(subset=["gap"])
    for place, (variant, part) in enumerate(parted.groupby("variant")):
        fig.add_scatter(
            x=part.gap,
            y=[max(0, int((all_gaps.gap <= gap).sum()) - 1) for gap in part.gap],
            mode="markers",
            marker=_style(variant, tier)["marker"] | {"symbol": "x", "size": 9},
            name="an answer parts in company",
            legendgroup="parted",
            showlegend=place == 0,
            hovertext=NAME.get(variant, theme.name(variant)),
        )
    fig.add_scatter(
        x=[BF16_STEP, BF16_STEP],
        y=[0, 100],
        mode="lines",
        line={"color": theme.REFERENCE, "dash": "dot", "width": 1.5},
        name="computed: a step of bfloat16",
    )
    return fig


def _figure(x: str, y: str) -> go.Figure:
    """Room above for a legend of five lines, which a narrow page needs."""
    fig = theme.figure(x, y, log_x=True, height=440)
    fig.update_layout(margin={"t": 102})
    return fig


def _interval(part: DataFrame, middle: str, low: str, high: str) -> dict[str, object]:
    return {
        "type": "data",
        "array": part[high] - part[middle],
        "arrayminus": part[middle] - part[low],
    }


def _by_load(rows: DataFrame, columns: tuple[str, str, str], title: str, tier: str) -> go.Figure:
    fig = _figure("Requests in flight", title)
    for variant, part in rows.groupby("variant"):
        fig.add_scatter(
            x=part.in_flight,
            y=part[columns[0]],
            mode="lines+markers",
            error_y=_interval(part, *columns),
            **_style(variant, tier),
        )
    fig.update_xaxes(tickvals=sorted(set(rows.in_flight)))
    fig.update_yaxes(rangemode="tozero")
    return fig


def _style(variant: str, tier: str) -> dict[str, dict[str, object]]:
    """The colour of its engine; another line for another configuration."""
    style = theme.style(variant.partition("-")[0], tier)
    style |= {"name": NAME.get(variant, style["name"]), "legendgroup": variant}
    if "-" in variant:
        style["line"] |= {"dash": "dashdot" if variant.endswith("-batching") else "longdash"}
        style["marker"] |= {"symbol": "square"}
    return style
