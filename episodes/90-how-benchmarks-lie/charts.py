"""Charts of How benchmarks lie: rows of queries.sql -> plotly figures."""

import plotly.graph_objects as go
from pandas import DataFrame

from harness.render import theme

CARELESS = theme.PHASE_COLOUR["prefill"]
OURS = theme.colour("emulator")


def itl_definitions(rows: DataFrame) -> go.Figure:
    """One stream, five figures for the time between its tokens."""
    fig = theme.figure("ms", "", height=300)
    for row in rows.itertuples():
        ours = row.number == 2
        fig.add_bar(
            x=[row.ms],
            y=[row.definition],
            orientation="h",
            marker={"color": OURS if ours else CARELESS},
            name="the one used here" if ours else "other definitions",
            legendgroup=str(ours),
            showlegend=row.number <= 2,
            hovertemplate="%{x:.1f} ms<extra></extra>",
        )
    fig.update_layout(barmode="overlay")
    fig.update_yaxes(autorange="reversed")
    return fig


def role(rows: DataFrame) -> go.Figure:
    """Time to the first chunk and to the first token of each answer."""
    fig = theme.figure("request", "ms since it was sent", height=320)
    look = {"mode": "markers", "hovertemplate": "%{y:.1f} ms<extra></extra>"}
    fig.add_scatter(
        x=rows.request,
        y=rows.first_chunk_ms,
        name="first chunk (a role)",
        marker={"color": CARELESS, "symbol": "x", "size": 8},
        **look,
    )
    fig.add_scatter(
        x=rows.request,
        y=rows.ttft_ms,
        name="first token",
        marker={"color": OURS, "size": 8},
        **look,
    )
    fig.update_yaxes(rangemode="tozero")
    return fig


def stall(rows: DataFrame) -> go.Figure:
    """A server that stood still once, from the time requests were sent and were due."""
    fig = theme.figure("when the request was due, s", "time to first token, ms", height=360)
    look = {"mode": "markers", "hovertemplate": "%{y:.0f} ms<extra></extra>"}
    fig.add_scatter(
        x=rows.due_s,
        y=rows.from_scheduled_ms,
        name="from the time it was due",
        marker={"color": OURS, "size": 5},
        **look,
    )
    fig.add_scatter(
        x=rows.due_s,
        y=rows.from_sent_ms,
        name="from the time it was sent",
        marker={"color": CARELESS, "symbol": "x", "size": 5},
        **look,
    )
    fig.update_yaxes(rangemode="tozero")
    return fig
