"""Each trace type and shape of plotly, drawn with matplotlib. See svg.py."""

import html
import re
from dataclasses import dataclass, field
from typing import Any

import numpy

from harness.errors import HarnessError
from harness.render import theme

DASHES: dict[str, Any] = {
    "solid": "-",
    "dash": (0, (5, 3)),
    "dot": (0, (1.2, 2)),
    "dashdot": (0, (5, 2, 1.2, 2)),
    "longdash": (0, (9, 3)),
}
MARKERS = {
    "circle": "o",
    "diamond": "D",
    "square": "s",
    "cross": "P",
    "x": "X",
    "triangle-up": "^",
    "triangle-down": "v",
    "line-ns": "|",
    "line-ns-open": "|",
}


@dataclass(slots=True)
class State:
    """What one trace leaves for the next: legend entries, bar stacking, the curve to fill to."""

    layout: dict[str, Any]
    bar_traces: int = 0
    legend: dict[str, Any] = field(default_factory=dict)
    previous: tuple[Any, Any] | None = None
    bars: int = 0
    stacked: dict[tuple[str, Any], float] = field(default_factory=dict)


def paint(pane: Any, trace: dict[str, Any], state: State) -> None:
    """Draws one trace. Raises HarnessError for a type that has no static picture."""
    painters = {"scatter": _scatter, "scattergl": _scatter, "bar": _bar, "heatmap": _heatmap}
    kind = trace.get("type", "scatter")
    if kind not in painters:
        raise HarnessError(
            f"a trace of type {kind!r} has no static picture; known: {', '.join(painters)}"
        )
    handle = painters[kind](pane, trace, state)
    if handle is not None and trace.get("name") and trace.get("showlegend", True):
        state.legend.setdefault(str(trace["name"]), handle)


def colour(value: Any) -> tuple[Any, float]:
    """A plotly colour as matplotlib's colour and alpha."""
    found = re.match(r"rgba\((\d+),\s*(\d+),\s*(\d+),\s*([\d.]+)\)", str(value))
    if not found:
        return value, 1.0
    red, green, blue = (int(part) for part in found.groups()[:3])
    return f"#{red:02x}{green:02x}{blue:02x}", float(found.group(4))


def number(value: Any) -> Any:
    return value if isinstance(value, int | float) else str(value)


def transform(pane: Any, paper: tuple[bool, bool]) -> Any:
    """Coordinates where x and y each are in data units or, on paper, fractions of the pane."""
    if all(paper):
        return pane.transAxes
    if paper[0]:
        return pane.get_yaxis_transform()
    return pane.get_xaxis_transform() if paper[1] else pane.transData


def shape(pane: Any, item: dict[str, Any]) -> None:
    """Lines and rectangles."""
    paper = tuple(
        str(item.get(f"{axis}ref", axis)) == "paper" or "domain" in str(item.get(f"{axis}ref"))
        for axis in "xy"
    )
    line = item.get("line", {})
    look = {
        "transform": transform(pane, (paper[0], paper[1])),
        "linestyle": DASHES[line.get("dash", "solid")],
        "linewidth": line.get("width", 2),
        "zorder": 0.5 if item.get("layer") == "below" else 5,
    }
    x0, x1, y0, y1 = (item[key] for key in ("x0", "x1", "y0", "y1"))
    if item.get("type") == "line":
        tint, alpha = colour(line.get("color", theme.INK))
        pane.plot([x0, x1], [y0, y1], color=tint, alpha=alpha, scalex=False, scaley=False, **look)
    elif item.get("type", "rect") == "rect":
        tint, alpha = colour(item.get("fillcolor", theme.GRID))
        xs, ys = [x0, x1, x1, x0], [y0, y0, y1, y1]
        pane.fill(
            xs, ys, color=tint, alpha=alpha * item.get("opacity", 1), **look | {"linewidth": 0}
        )
    else:
        raise HarnessError(f"a shape of type {item.get('type')!r} has no static picture")


def _values(items: Any) -> Any:
    """Numbers with gaps as NaN; anything else is a category."""
    items = list(items)
    if all(isinstance(item, int | float) or item is None for item in items):
        return numpy.array([numpy.nan if item is None else item for item in items], dtype=float)
    return [html.unescape(str(item)) for item in items]


def _scatter(pane: Any, trace: dict[str, Any], state: State) -> Any:
    y = _values(trace.get("y", []))
    x = _values(trace.get("x", range(len(y))))
    mode = trace.get("mode", "lines+markers" if len(y) < 20 else "lines")
    line, marker = trace.get("line", {}), trace.get("marker", {})
    opacity = trace.get("opacity", 1)
    tint, alpha = colour(line.get("color", marker.get("color", theme.REFERENCE)))
    steps = {"hv": "steps-post", "vh": "steps-pre"}.get(line.get("shape", ""), "default")
    if trace.get("fill", "none") != "none":
        _fill(pane, x, y, trace, state, steps)
    state.previous = (x, y)
    handle = None
    if "lines" in mode:
        handle = pane.plot(
            x,
            y,
            color=tint,
            alpha=alpha * opacity,
            linewidth=line.get("width", 2),
            linestyle=DASHES[line.get("dash", "solid")],
            drawstyle=steps,
        )[0]
    if "markers" in mode:
        handle = _markers(pane, x, y, marker, tint, opacity, handle)
    _errors(pane, x, y, trace, tint)
    if "text" in mode:
        for place_x, place_y, words in zip(x, y, trace.get("text", []), strict=False):
            pane.annotate(
                html.unescape(str(words)), (place_x, place_y), (4, 4), textcoords="offset points"
            )
    if handle is None and trace.get("fill", "none") != "none":
        handle = pane.fill([], [], color=colour(trace.get("fillcolor", tint))[0], alpha=0.3)[0]
    return handle


def _markers(
    pane: Any, x: Any, y: Any, marker: dict[str, Any], tint: Any, opacity: float, line: Any
) -> Any:
    style = MARKERS.get(str(marker.get("symbol", "circle")))
    if style is None:
        raise HarnessError(f"the marker {marker['symbol']!r} has no static picture")
    tints = marker.get("color", tint)
    if isinstance(tints, list):
        return pane.scatter(
            x, y, c=[colour(each)[0] for each in tints], marker=style, s=marker.get("size", 7) ** 2
        )
    fill, alpha = colour(tints)
    dots = pane.plot(
        x,
        y,
        color=fill,
        alpha=alpha * opacity * marker.get("opacity", 1),
        marker=style,
        markersize=marker.get("size", 6),
        markeredgewidth=1.2 if style == "|" else 0,
        linestyle="none",
    )[0]
    return (line, dots) if line is not None else dots


def _errors(pane: Any, x: Any, y: Any, trace: dict[str, Any], tint: Any) -> None:
    for axis in ("x", "y"):
        bars = trace.get(f"error_{axis}")
        if not bars or bars.get("visible") is False:
            continue
        values = y if axis == "y" else x
        plus = _values(bars.get("array", [bars.get("value", 0)] * len(values)))
        minus = _values(bars["arrayminus"]) if "arrayminus" in bars else plus
        pane.errorbar(
            x,
            y,
            **{f"{axis}err": [minus, plus]},
            fmt="none",
            ecolor=colour(bars.get("color", tint))[0],
            elinewidth=bars.get("thickness", 1.2),
            capsize=bars.get("width", 3),
        )


def _fill(pane: Any, x: Any, y: Any, trace: dict[str, Any], state: State, steps: str) -> None:
    line_colour = trace.get("line", {}).get("color", theme.REFERENCE)
    tint, alpha = colour(trace.get("fillcolor", theme.fade(colour(line_colour)[0], 0.3)))
    look = {"color": tint, "alpha": alpha, "linewidth": 0}
    kind = trace["fill"]
    step = {"steps-post": "post", "steps-pre": "pre"}.get(steps)
    if kind == "tozeroy":
        pane.fill_between(x, y, 0, step=step, **look)
    elif kind == "toself":
        pane.fill(x, y, **look)
    elif kind == "tonexty" and state.previous is not None:
        before_x, before_y = state.previous
        pane.fill(
            numpy.concatenate([numpy.asarray(x), numpy.asarray(before_x)[::-1]]),
            numpy.concatenate([numpy.asarray(y), numpy.asarray(before_y)[::-1]]),
            **look,
        )
    else:
        raise HarnessError(f"the fill {kind!r} has no static picture")


def _bar(pane: Any, trace: dict[str, Any], state: State) -> Any:
    """Horizontal or vertical; groups and stacks are laid out as plotly does."""
    lying = trace.get("orientation", "v") == "h"
    places = _values(trace["y"] if lying else trace["x"])
    lengths = _values(trace["x"] if lying else trace["y"])
    base = trace.get("base", 0)
    starts = _values(base) if isinstance(base, list) else numpy.full(len(lengths), float(base))
    mode = state.layout.get("barmode", "group")
    width = 1 - state.layout.get("bargap", 0.2)
    if mode in ("stack", "relative"):
        for i, place in enumerate(places):
            starts[i] += state.stacked.get((trace.get("yaxis", "y"), place), 0.0)
            state.stacked[trace.get("yaxis", "y"), place] = starts[i] + lengths[i]
    elif mode == "group":
        width, places = _grouped(pane, places, width, state.bars, state.bar_traces, lying)
        state.bars += 1
    given = trace.get("width")
    marker = trace.get("marker", {})
    tints = marker.get("color", theme.REFERENCE)
    tint, alpha = (
        ([colour(each)[0] for each in tints], 1.0) if isinstance(tints, list) else colour(tints)
    )
    look = {"color": tint, "alpha": alpha * trace.get("opacity", 1), "linewidth": 0}
    draw = pane.barh if lying else pane.bar
    size = {("height" if lying else "width"): given if given is not None else width}
    bars = draw(places, lengths, **size, **{("left" if lying else "bottom"): starts}, **look)
    return bars[0] if len(bars) else None


def _grouped(
    pane: Any, places: Any, width: float, index: int, groups: int, lying: bool
) -> tuple[float, Any]:
    """Width and centres of one trace's bars among `groups` traces side by side."""
    axis = pane.yaxis if lying else pane.xaxis
    if isinstance(places, list):
        axis.update_units(places)
        places = numpy.array(axis.convert_units(places), dtype=float)
    each = width / groups
    return each, places + (index - (groups - 1) / 2) * each


def _heatmap(pane: Any, trace: dict[str, Any], state: State) -> None:
    """Cells from the background to one colour: plotly's two-colour scale [[0, a], [1, b]]."""
    from matplotlib.colors import LinearSegmentedColormap

    rows = numpy.array([_values(row) for row in trace["z"]], dtype=float)
    scale = trace.get("colorscale", [[0, "#ffffff"], [1, theme.REFERENCE]])
    stops = [(place, colour(tint)[0]) for place, tint in scale]
    x = _values(trace.get("x", range(rows.shape[1])))
    y = _values(trace.get("y", range(rows.shape[0])))
    pane.imshow(
        rows,
        cmap=LinearSegmentedColormap.from_list("scale", stops),
        vmin=trace.get("zmin"),
        vmax=trace.get("zmax"),
        aspect="auto",
        origin="lower",
        interpolation="none",
    )
    pane.set_xticks(range(len(x)), labels=[f"{v:g}" if isinstance(v, float) else v for v in x])
    pane.set_yticks(range(len(y)), labels=[f"{v:g}" if isinstance(v, float) else v for v in y])
    pane.grid(False)
