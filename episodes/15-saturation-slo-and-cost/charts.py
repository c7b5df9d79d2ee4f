"""Charts of Episode 15: rows of queries.sql -> plotly figures."""

from typing import Any

import plotly.graph_objects as go
from pandas import DataFrame, Series

from harness.render import theme

WAYS = {"": "no cap", "-cap": "capped"}


def saturation(closed: DataFrame, tier: str) -> go.Figure:
    """Requests per second, those that met the objective, and their time, by requests in flight."""
    fig = theme.panes(
        "Requests in flight",
        ["All, requests/s", "In time, requests/s", "Whole request p50, s"],
        height=700,
    )
    for engine, part in closed.groupby("engine", sort=False):
        style = theme.style(engine, tier)
        fig.add_scatter(
            x=part.in_flight,
            y=part.predicted_per_s,
            mode="lines",
            line={"color": theme.colour(engine), "dash": "dot", "width": 1.5},
            name="predicted: N / (a + b N)",
            legendgroup="predicted",
            showlegend=engine == closed.engine.iloc[0],
        )
        for axis, y, low, high in (
            ("y", part.requests_per_s, part.low, part.high),
            ("y2", part.good_per_s, part.good_low, part.good_high),
        ):
            fig.add_scatter(
                x=part.in_flight,
                y=y,
                error_y=_interval(y, low, high),
                mode="markers" if axis == "y" else "lines+markers",
                yaxis=axis,
                showlegend=axis == "y",
                **style,
            )
        fig.add_scatter(
            x=part.in_flight,
            y=part.e2e_ms / 1000,
            mode="lines+markers",
            yaxis="y3",
            showlegend=False,
            **style,
        )
    levels = sorted(closed.in_flight.unique().tolist())
    fig.update_layout(xaxis_type="log", xaxis_tickvals=levels, margin_t=72)
    for axis in ("yaxis", "yaxis2", "yaxis3"):
        fig.update_layout({axis: {"rangemode": "tozero"}})
    return fig


def offered_load(offered: DataFrame, tier: str) -> go.Figure:
    """What was done, what was in time, and the time of a request, by the rate offered."""
    fig = theme.panes(
        "Offered rate, % of capacity",
        ["Done, requests/s", "In time, requests/s", "Mean request, s"],
        height=700,
    )
    for engine, part in offered.groupby("engine", sort=False):
        style = theme.style(engine, tier)
        line = part[part.predicted_s.notna()].drop_duplicates("capacity_percent")
        line = line.sort_values("capacity_percent")
        fig.add_scatter(
            x=line.capacity_percent,
            y=line.predicted_s,
            mode="lines",
            yaxis="y3",
            line={"color": theme.colour(engine), "dash": "dot", "width": 1.5},
            name="predicted: (a + b) / (1 − load)",
            legendgroup="predicted",
            showlegend=engine == offered.engine.iloc[0],
        )
        for valid, rows in part.groupby("valid", sort=False):
            symbol = style["marker"]["symbol"] if valid else "x"
            for axis, y in (("y", rows.done_per_s), ("y2", rows.good_per_s), ("y3", rows.mean_s)):
                fig.add_scatter(
                    x=rows.capacity_percent,
                    y=y,
                    mode="markers",
                    yaxis=axis,
                    showlegend=axis == "y",
                    marker=style["marker"] | {"symbol": symbol},
                    name=theme.name(engine) + ("" if valid else ", INVALID"),
                )
    for axis in ("yaxis", "yaxis2"):
        fig.update_layout({axis: {"rangemode": "tozero"}})
    fig.update_layout(yaxis3_type="log", margin_t=104)
    return fig


def bisection(steps: DataFrame, found: DataFrame, tier: str) -> go.Figure:
    """The rates that each repeat's search tried, which held, and where it ended."""
    fig = theme.figure("Repeat and step", "Rate, % of capacity", height=420)
    ticks: dict[float, str] = {}
    for number, (engine, part) in enumerate(steps.groupby("engine", sort=False)):
        width = part.search_step.max() + 1
        for place, (repeat, rows) in enumerate(part.groupby("repeat")):
            x = (number * (part.repeat.nunique() + 0.5) + place) * width + rows.search_step
            ticks[float(x.mean())] = f"{theme.name(engine)} {repeat}"
            fig.add_scatter(
                x=x,
                y=rows.capacity_percent,
                mode="lines",
                line={"color": theme.colour(engine), "width": 1},
                showlegend=False,
                hoverinfo="skip",
            )
            marker = theme.style(engine, tier)["marker"]
            for result, symbol in (
                ("held", marker["symbol"]),
                ("not held", "x"),
                ("says nothing", "square"),
            ):
                some = rows.result == result
                if some.any():
                    fig.add_scatter(
                        x=x[some],
                        y=rows.capacity_percent[some],
                        mode="markers",
                        marker=marker | {"symbol": symbol, "size": 9},
                        name=result,
                        legendgroup=result,
                        showlegend=result not in {t.legendgroup for t in fig.data},
                    )
            end = found[(found.engine == engine) & (found.repeat == repeat)].capacity_percent
            fig.add_scatter(
                x=[x.min(), x.max()],
                y=[float(end.iloc[0])] * 2,
                mode="lines",
                line={"color": theme.REFERENCE, "dash": "dash", "width": 1.5},
                name="found",
                legendgroup="found",
                showlegend="found" not in {t.legendgroup for t in fig.data},
            )
    fig.update_layout(xaxis_tickvals=list(ticks), xaxis_ticktext=list(ticks.values()), margin_t=88)
    return fig


# Parts of a request: column of the query, what it is called, and its colour.
PARTS = (
    ("front_ms", "waits in front of the server", theme.REFERENCE),
    ("queue_ms", "waits in the engine", theme.PHASE_COLOUR["queue"]),
    ("first_ms", "then to the first token", theme.PHASE_COLOUR["prefill"]),
    ("decode_ms", "tokens after it", theme.PHASE_COLOUR["decode"]),
)


def who_waits(caps: DataFrame) -> go.Figure:
    """Mean parts of a request's time with no cap, a cap in front, and a cap in the engine."""
    fig = theme.figure("Mean time of a request, ms", "", height=380)
    rows = caps.iloc[::-1]
    for column, said, colour in PARTS:
        fig.add_bar(
            x=rows[column],
            y=[f"{theme.name(e)}, {cap}" for e, cap in zip(rows.engine, rows.cap, strict=True)],
            orientation="h",
            marker={"color": colour},
            name=said,
        )
    fig.update_layout(barmode="stack", bargap=0.3, margin_t=88)
    return fig


def full_pool(pool_requests: DataFrame) -> go.Figure:
    """Each answer with a full pool: its wait, its tokens, and the longest gap within them."""
    variants = list(dict.fromkeys(pool_requests.variant))
    variants.sort(key=lambda name: (name.partition("-")[0] != "vllm", name))
    fig = theme.panes("Time since the cell began, s", [_way(v) for v in variants], height=780)
    for number, variant in enumerate(variants):
        rows = pool_requests[pool_requests.variant == variant]
        for said, begin, end, colour, width in (
            ("waits for its first token", "sent_s", "first_s", theme.PHASE_COLOUR["queue"], 2),
            ("its tokens", "first_s", "last_s", theme.PHASE_COLOUR["decode"], 5),
            ("its longest gap", "gap_from_s", "gap_to_s", theme.PHASE_COLOUR["prefill"], 5),
        ):
            x: list[Any] = []
            y: list[Any] = []
            for row in rows.itertuples():
                x += [getattr(row, begin), getattr(row, end), None]
                y += [row.place, row.place, None]
            fig.add_scatter(
                x=x,
                y=y,
                mode="lines",
                line={"color": colour, "width": width},
                yaxis=f"y{number + 1}" if number else "y",
                name=said,
                showlegend=number == 0,
            )
    fig.update_layout(margin_t=72)
    return fig


def _way(variant: str) -> str:
    engine, _, cap = variant.partition("-")
    return f"{theme.name(engine)}, {WAYS['-' + cap if cap else '']}"


def _interval(middle: Series, low: Series, high: Series) -> dict[str, Any]:
    bars = {"array": high - middle, "arrayminus": middle - low}
    return {"type": "data", "symmetric": False, "thickness": 1.2, "width": 4} | bars
