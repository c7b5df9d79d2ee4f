"""Charts of the page of peers: rows of queries.sql -> plotly figures."""

import plotly.graph_objects as go
from pandas import DataFrame

from harness.render import theme

COLOURS = ("#5b5fc7", "#b57a00", "#0f8a6b", "#b4436c", "#3a7ca5")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def errors(rows: DataFrame) -> go.Figure:
    """How far off a gap between two chunks is, at the 99th percentile"""
    fig = theme.figure(
        "Chunks per second, all streams together",
        "p99 error of a gap, ms",
        log_x=True,
        log_y=True,
    )
    known = rows.dropna(subset=["gap_p99_ms"])  # not all tools keep gaps
    for place, (tool, of_tool) in enumerate(known.groupby("tool", sort=False)):
        fig.add_scatter(
            x=of_tool["rate"],
            y=of_tool["gap_p99_ms"],
            mode="lines+markers",
            name=str(tool),
            line={"color": COLOURS[place % 5], "dash": DASHES[place % 5]},
            hovertemplate="%{y:.3f} ms at %{x:,} chunks/s<extra>" + str(tool) + "</extra>",
        )
    return fig
