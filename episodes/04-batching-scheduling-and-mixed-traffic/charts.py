"""Charts of Episode 04: rows of queries.sql -> plotly figures."""

import plotly.graph_objects as go
from pandas import DataFrame

from harness.render import theme

PREFILL, DECODE = theme.PHASE_COLOUR["prefill"], theme.PHASE_COLOUR["decode"]
ORDER = [
    *("vllm-tiny", "vllm-small", "vllm-whole", "sglang-small", "sglang-mixed"),
    *("vllm-fair", "vllm-unchunked", "sglang-whole", "sglang-interval"),
]


def timeline(timeline_steps: DataFrame, timeline_tokens: DataFrame) -> go.Figure:
    """Steps of the scheduler by the tokens in them, above the tokens that the client received."""
    fig = theme.panes("Seconds from the long prompt", ["Tokens in the step", "Answer"], height=520)
    there = set(timeline_steps.variant)
    names = [variant for variant in ORDER if variant in there]
    for level, variant in enumerate(names):
        steps = timeline_steps[timeline_steps.variant == variant]
        tokens = timeline_tokens[timeline_tokens.variant == variant]
        _bars(fig, steps, level)
        _arrivals(fig, tokens, level)
    fig.update_layout(
        yaxis={"rangemode": "tozero"},
        yaxis2={"range": [0.4, timeline_tokens.lane.max() + 0.6], "showticklabels": False},
    )
    theme.levels(fig, names, names.index("vllm-small"))
    return fig


def stall(rows: DataFrame, tier: str) -> go.Figure:
    """The longest gap of a running answer and the long prompt's TTFT by the tokens of a step."""
    fig = theme.panes(
        "Token budget of a step", ["Longest gap, ms", "TTFT of the long prompt, ms"], height=560
    )
    kinds = (
        ("vllm", "vLLM", rows.policy == "vLLM"),
        ("sglang", "SGLang, mixed", rows.policy == "SGLang, mixed"),
        ("sglang", "SGLang", rows.policy == "SGLang"),
    )
    for engine, name, chosen in kinds:
        part = rows[chosen].sort_values("budget_tokens")
        style = theme.style(engine, tier)
        symbol = "square" if name.endswith("mixed") else style["marker"]["symbol"]
        marker = style["marker"] | {"symbol": symbol}
        for axis, what in (("y", "stall"), ("y2", "long")):
            value, low, high = (part[f"{what}{end}_ms"] for end in ("", "_low", "_high"))
            fig.add_scatter(
                x=part.budget_tokens, y=value, yaxis=axis, mode="markers", name=name,
                legendgroup=name, showlegend=axis == "y", marker=marker,
                error_y={
                    "type": "data", "symmetric": False, "array": (high - value).fillna(0),
                    "arrayminus": (value - low).fillna(0), "thickness": 1.2, "width": 4,
                },
                hovertemplate="%{x} tokens: %{y:,.0f} ms<extra></extra>",
            )  # fmt: skip
            fig.add_scatter(
                x=part.budget_tokens, y=part[f"{what}_due_ms"], yaxis=axis, mode="lines+markers",
                name="predicted", legendgroup="predicted",
                showlegend=axis == "y" and engine == "vllm",
                line={"color": theme.REFERENCE, "dash": "dash", "width": 1.5},
                marker={"color": theme.REFERENCE, "symbol": "x", "size": 7},
                hovertemplate="predicted: %{y:,.0f} ms<extra></extra>",
            )  # fmt: skip
    ticks = sorted(rows.budget_tokens.unique().tolist())
    fig.update_layout(
        xaxis={"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,}" for tick in ticks]},
        yaxis={"rangemode": "tozero"},
        yaxis2={"rangemode": "tozero"},
    )
    return fig


def _bars(fig: go.Figure, steps: DataFrame, level: int) -> None:
    """A step is as wide as it took, a pause between two a gap; prompts stand before answers."""
    whole = steps.prefill_tokens + steps.decode_tokens
    parts = (("tokens of answers", whole, DECODE), ("of prompts", steps.prefill_tokens, PREFILL))
    for name, tokens, colour in parts:
        x = [
            at for row in steps.itertuples() for at in (row.from_s, row.from_s, row.to_s, row.to_s)
        ]
        y = [high for top in tokens for high in (0, top, top, 0)]
        fig.add_scatter(
            x=x, y=y, mode="lines", name=name, meta={"level": level}, fill="tozeroy",
            line={"color": colour, "width": 1}, fillcolor=theme.fade(colour, 0.8),
            hovertemplate="%{y} tokens<extra></extra>",
        )  # fmt: skip


def _arrivals(fig: go.Figure, tokens: DataFrame, level: int) -> None:
    roles = (
        ("running", "running answers", DECODE, "circle"),
        ("long", "the long one", PREFILL, "diamond"),
        ("behind", "the short one behind", theme.REFERENCE, "square"),
    )
    for role, name, colour, symbol in roles:
        part = tokens[tokens.role == role]
        fig.add_scatter(
            x=part.at_s, y=part.lane, yaxis="y2", mode="markers", name=name, meta={"level": level},
            marker={"color": colour, "symbol": symbol, "size": 5},
            hovertemplate="%{x:.2f} s<extra></extra>",
        )  # fmt: skip
