"""Charts of Episode 00: rows of queries.sql -> plotly figures."""

import plotly.graph_objects as go
from pandas import DataFrame

from harness.render import theme

UNKNOWN = "not split by this engine"


def request_timeline(rows: DataFrame) -> go.Figure:
    """One long request on each engine: the wait for the first token, then every token."""
    fig = theme.figure("Time since the request was sent, s", "", height=340)
    for place, row in enumerate(rows.itertuples()):
        lane = theme.name(row.engine)
        first_s, last_s = row.ttft_ms / 1000, row.e2e_ms / 1000
        _bar(fig, lane, "prefill", 0, first_s, _first_wait(row), first=place == 0)
        _bar(fig, lane, "decode", first_s, last_s, "decode", first=place == 0)
        fig.add_scatter(
            x=row.token_s,
            y=[lane] * len(row.token_s),
            mode="markers",
            marker={"color": theme.colour(row.engine), "symbol": "line-ns-open", "size": 14},
            name="a token" if place == 0 else None,
            showlegend=place == 0,
            hovertemplate="%{x:.2f} s<extra></extra>",
        )
    fig.update_layout(barmode="overlay", bargap=0.55)
    return fig


def _first_wait(row: object) -> str:
    queue, prefill = getattr(row, "queue_ms", None), getattr(row, "prefill_ms", None)
    if prefill is None or prefill != prefill:  # NaN: the engine gives no account of its own
        return UNKNOWN
    return f"queue {queue:.1f} ms, prefill {prefill:.0f} ms by the engine's own account"


def _bar(
    fig: go.Figure, lane: str, phase: str, start: float, end: float, said: str, first: bool
) -> None:
    names = {"prefill": "until the first token (prefill)", "decode": "decode"}
    fig.add_bar(
        x=[end - start],
        y=[lane],
        base=[start],
        orientation="h",
        marker={"color": theme.fade(theme.PHASE_COLOUR[phase], 0.35)},
        name=names[phase],
        legendgroup=phase,
        showlegend=first,
        hovertext=said,
        hoverinfo="text",
    )


def ttft_by_length(rows: DataFrame, ttft_fit: DataFrame, tier: str) -> go.Figure:
    """Time to first token against prompt length, with the fitted line of each engine."""
    fig = theme.figure("Prompt length, tokens", "TTFT p50, ms")
    for engine, part in rows.groupby("engine"):
        fig.add_scatter(
            x=part.prompt_tokens,
            y=part.p50_ms,
            mode="markers",
            error_y=_interval(part),
            **theme.style(engine, tier),
        )
        fit = ttft_fit[ttft_fit.engine == engine].iloc[0]
        ends = [0, int(part.prompt_tokens.max())]
        fig.add_scatter(
            x=ends,
            y=[fit.intercept_ms + fit.slope_ms_per_token * end for end in ends],
            mode="lines",
            **(theme.style(engine, tier) | {"name": f"{theme.name(engine)}, fit"}),
            showlegend=False,
        )
    fig.update_yaxes(rangemode="tozero")
    return fig


def tpot_by_length(rows: DataFrame, tier: str) -> go.Figure:
    """Time per output token against prompt length."""
    fig = theme.figure("Prompt length, tokens", "TPOT p50, ms")
    for engine, part in rows.groupby("engine"):
        fig.add_scatter(
            x=part.prompt_tokens,
            y=part.p50_ms,
            mode="lines+markers",
            error_y=_interval(part),
            **theme.style(engine, tier),
        )
    fig.update_yaxes(rangemode="tozero")
    return fig


def itl_by_position(rows: DataFrame, tier: str) -> go.Figure:
    """Inter-token latency against the position of the token in the answer."""
    fig = theme.figure("Position in the answer, tokens", "ITL, ms")
    for engine, part in rows.groupby("engine"):
        fill = theme.fade(theme.colour(engine), 0.15)
        edge = {"mode": "lines", "line": {"width": 0}, "showlegend": False, "hoverinfo": "skip"}
        fig.add_scatter(x=part.position_tokens, y=part.p10_ms, **edge)
        fig.add_scatter(
            x=part.position_tokens, y=part.p90_ms, fill="tonexty", fillcolor=fill, **edge
        )
        fig.add_scatter(
            x=part.position_tokens,
            y=part.p50_ms,
            mode="lines",
            **theme.style(engine, tier),
        )
    fig.update_yaxes(rangemode="tozero")
    return fig


def kv_use(rows: DataFrame, kv_need: DataFrame) -> go.Figure:
    """KV cache reserved while one long request is served, beside the tokens it has."""
    fig = theme.figure("Time since the request was sent, s", "KV cache, tokens")
    for engine, part in rows.groupby("engine"):
        style = theme.style(engine)
        fig.add_scatter(
            x=part.seconds,
            y=part.kv_used_tokens,
            mode="lines",
            **(style | {"line": style["line"] | {"shape": "hv"}}),
        )
        need = kv_need[kv_need.engine == engine]
        fig.add_scatter(
            x=need.seconds,
            y=need.tokens,
            mode="lines",
            line={"color": theme.REFERENCE, "dash": "dot", "width": 1.5},
            name="tokens that the request has",
            legendgroup="needed",
            showlegend=engine == rows.engine.iloc[0],
        )
    fig.update_xaxes(rangemode="tozero")
    fig.update_yaxes(rangemode="tozero")
    return fig


def engine_share(rows: DataFrame, tier: str) -> go.Figure:
    """What the client waits for beyond the engine's own queue and prefill."""
    fig = theme.figure("Prompt length, tokens", "TTFT outside queue and prefill, ms")
    for engine, part in rows.groupby("engine"):
        fig.add_scatter(
            x=part.prompt_tokens,
            y=part.around_ms,
            mode="lines+markers",
            **theme.style(engine, tier),
        )
    fig.update_yaxes(rangemode="tozero")
    return fig


def _interval(part: DataFrame) -> dict[str, object]:
    return {
        "type": "data",
        "array": part.high_ms - part.p50_ms,
        "arrayminus": part.p50_ms - part.low_ms,
    }
