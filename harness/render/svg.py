"""The static picture of a figure: drawn at build from the same data that Plotly gets.

It stands in the page before any script has run, with scripts off, and in print. Supported: scatter
(lines, markers, error bars, fills), bars, heatmaps, shapes, annotations, log and category axes,
subplots by axis domains. Anything else is an error at build, not a wrong picture.
Colours are replaced by CSS variables, so that one picture follows the light and the dark scheme.
"""

import html
import io
import re
from typing import Any

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from harness.errors import HarnessError
from harness.render import svg_traces, theme

PIXELS_PER_INCH = 72  # matplotlib's SVG counts 72 units an inch: one unit is one CSS pixel
RC: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 12,
    "axes.labelsize": 13,
    "axes.edgecolor": theme.GRID,
    "axes.labelcolor": theme.INK,
    "axes.linewidth": 1,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": theme.INK,
    "text.parse_math": False,
    "xtick.color": theme.GRID,
    "ytick.color": theme.GRID,
    "xtick.labelcolor": theme.INK,
    "ytick.labelcolor": theme.INK,
    "grid.color": theme.GRID,
    "axes.grid": True,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def draw(figure: dict[str, Any], ident: str, width_px: int = 720) -> str:
    """One <svg> element. `figure` is a dressed, plain figure; ident makes its ids unique."""
    height_px = int(figure["layout"]["height"])
    with matplotlib.rc_context(RC | {"svg.hashsalt": ident}):
        canvas = Figure(figsize=(width_px / PIXELS_PER_INCH, height_px / PIXELS_PER_INCH))
        FigureCanvasSVG(canvas)
        canvas.patch.set_alpha(0)
        _paint(canvas, figure, width_px, height_px)
        out = io.StringIO()
        canvas.savefig(out, format="svg", dpi=PIXELS_PER_INCH, metadata={"Date": None})
    return _clean(out.getvalue(), ident)


def shown(figure: dict[str, Any]) -> list[dict[str, Any]]:
    """The traces of the level that a figure starts with, and those of none."""
    start = (figure["layout"].get("meta") or {}).get("start")
    return [t for t in figure["data"] if (t.get("meta") or {}).get("level", start) == start]


def standalone(svg: str, values: dict[str, str]) -> str:
    """The picture as a file of its own: CSS variables replaced by the colours of one scheme."""
    for variable, colour in values.items():
        svg = svg.replace(f"var({variable})", colour)
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return svg.replace("var(--tbt-font)", "sans-serif").replace("<svg ", f"<svg {spaces} ", 1)


def label(text: str) -> str:
    """Plotly's text as plain text: <br> is a line break, other tags go, entities are resolved."""
    lines = re.sub(r"<br\s*/?>", "\n", text)
    return html.unescape(re.sub(r"</?(?:b|i|sub|sup|span|em|strong)[^>]*>", "", lines))


def _paint(canvas: Figure, figure: dict[str, Any], width_px: int, height_px: int) -> None:
    layout, data = figure["layout"], shown(figure)
    margin = layout["margin"]
    panes: dict[tuple[str, str], Any] = {}
    for trace in data:
        names = trace.get("xaxis", "x"), trace.get("yaxis", "y")
        if names not in panes:
            box = _box(layout, names, margin, width_px, height_px)
            panes[names] = _pane(canvas, box, _axis(layout, names[0]), _axis(layout, names[1]))
    if not panes:
        raise HarnessError("a figure without a trace cannot be drawn")
    bars = sum(trace.get("type") == "bar" for trace in data)
    state = svg_traces.State(layout, bars)
    for trace in data:
        pane = panes[trace.get("xaxis", "x"), trace.get("yaxis", "y")]
        svg_traces.paint(pane, trace, state)
    for (x, y), pane in panes.items():
        _finish_axis(pane, "x", _axis(layout, x))
        _finish_axis(pane, "y", _axis(layout, y))
    _share_x(panes, layout)
    for shape in layout.get("shapes", []):
        svg_traces.shape(_pane_of(panes, shape), shape)
    for note in layout.get("annotations", []):
        _annotation(_pane_of(panes, note), note)
    margin = _widened(canvas, margin, width_px)
    for names, pane in panes.items():
        pane.set_position(_box(layout, names, margin, width_px, height_px))
    if layout.get("showlegend", len(state.legend) > 1) and state.legend:
        _legend(canvas, state.legend, width_px, height_px, margin)


def _axis(layout: dict[str, Any], name: str) -> dict[str, Any]:
    return layout.get(f"{name[0]}axis{name[1:]}", {})


def _box(
    layout: dict[str, Any], names: tuple[str, str], margin: dict[str, Any], width: int, height: int
) -> list[float]:
    """Place of a pane in the canvas, as fractions, from the axes' domains and the margins."""
    x0, x1 = _axis(layout, names[0]).get("domain", [0, 1])
    y0, y1 = _axis(layout, names[1]).get("domain", [0, 1])
    inner_width = width - margin["l"] - margin["r"]
    inner_height = height - margin["t"] - margin["b"]
    return [
        (margin["l"] + x0 * inner_width) / width,
        (margin["b"] + y0 * inner_height) / height,
        (x1 - x0) * inner_width / width,
        (y1 - y0) * inner_height / height,
    ]


def _widened(canvas: Figure, margin: dict[str, Any], width_px: int) -> dict[str, Any]:
    """The margins, wide enough for the longest tick label (plotly's automargin)."""
    canvas.draw_without_rendering()
    # 72 dots an inch were drawn at the canvas's own dpi
    scale = PIXELS_PER_INCH / canvas.dpi
    boxes = [box for pane in canvas.axes if (box := pane.get_tightbbox()) is not None]
    left = max(0.0, -min(box.x0 for box in boxes) * scale)
    right = max(0.0, max(box.x1 for box in boxes) * scale - width_px)
    return margin | {"l": margin["l"] + left, "r": margin["r"] + right}


def _pane(canvas: Figure, box: list[float], x: dict[str, Any], y: dict[str, Any]) -> Any:
    pane = canvas.add_axes((box[0], box[1], box[2], box[3]))
    pane.patch.set_alpha(0)
    if x.get("type") == "log":
        pane.set_xscale("log")
    if y.get("type") == "log":
        pane.set_yscale("log")
    return pane


def _finish_axis(pane: Any, letter: str, axis: dict[str, Any]) -> None:
    """Title, range and ticks; plotly's ranges are exponents on a log axis."""
    target = pane.xaxis if letter == "x" else pane.yaxis
    title = axis.get("title", {})
    target.set_label_text(label(title.get("text", "") if isinstance(title, dict) else str(title)))
    is_log = axis.get("type") == "log"
    if axis.get("range"):
        low, high = axis["range"]
        limits = (10**low, 10**high) if is_log else (low, high)
        (pane.set_xlim if letter == "x" else pane.set_ylim)(*limits)
    elif axis.get("rangemode") == "tozero":
        (pane.set_xlim if letter == "x" else pane.set_ylim)(0, None)
    if axis.get("autorange") == "reversed":
        (pane.invert_xaxis if letter == "x" else pane.invert_yaxis)()
    if "tickvals" in axis:
        texts = [label(str(t)) for t in axis.get("ticktext", axis["tickvals"])]
        target.set_ticks(axis["tickvals"], labels=texts)
        target.set_minor_locator(matplotlib.ticker.NullLocator())
    elif is_log:
        target.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda v, _: f"{v:,g}"))
        target.set_minor_formatter(matplotlib.ticker.NullFormatter())
    if axis.get("showticklabels") is False:
        target.set_tick_params(labelleft=False, labelbottom=False)
    if axis.get("showgrid") is False:
        target.grid(False)
    target.set_tick_params(which="both", length=3)


def _share_x(panes: dict[tuple[str, str], Any], layout: dict[str, Any]) -> None:
    """Panes of one x axis get one range, and its ticks and title stand under its anchor alone."""
    for name in {x for x, _ in panes}:
        sharing = {y: pane for (x, y), pane in panes.items() if x == name}
        limits = [pane.get_xlim() for pane in sharing.values()]
        anchor = _axis(layout, name).get("anchor")
        for y, pane in sharing.items():
            if len(sharing) == 1:
                continue
            pane.set_xlim(min(low for low, _ in limits), max(high for _, high in limits))
            if anchor in sharing and y != anchor:
                pane.xaxis.set_label_text("")
                pane.xaxis.set_tick_params(which="both", labelbottom=False)


def _pane_of(panes: dict[tuple[str, str], Any], item: dict[str, Any]) -> Any:
    x = str(item.get("xref", "x")).split(" ")[0]
    y = str(item.get("yref", "y")).split(" ")[0]
    for names, pane in panes.items():
        if x in (names[0], "paper") and y in (names[1], "paper"):
            return pane
    return next(iter(panes.values()))


def _annotation(pane: Any, note: dict[str, Any]) -> None:
    x, y = svg_traces.number(note.get("x", 0)), svg_traces.number(note.get("y", 0))
    x = 10**x if pane.get_xscale() == "log" and note.get("xref", "x") == "x" else x
    y = 10**y if pane.get_yscale() == "log" and note.get("yref", "y") == "y" else y
    paper = (
        note.get("xref") == "paper" or "domain" in str(note.get("xref")),
        note.get("yref") == "paper" or "domain" in str(note.get("yref")),
    )
    transform = svg_traces.transform(pane, paper)
    arrow = note.get("showarrow", True)
    pane.annotate(
        label(str(note.get("text", ""))),
        (x, y),
        xycoords=transform,
        # plotly's default offset of an arrow's text is 10 px left and 30 px up
        xytext=(note.get("ax", -10), -note.get("ay", -30)) if arrow else (0, 0),
        textcoords="offset points",
        ha=_anchor(note.get("xanchor"), x, paper[0], ("left", "center", "right")),
        va=_anchor(note.get("yanchor"), y, paper[1], ("bottom", "center", "top")),
        color=note.get("font", {}).get("color", theme.INK),
        arrowprops={"arrowstyle": "-", "color": theme.INK, "lw": 0.8} if arrow else None,
    )


def _anchor(given: Any, place: Any, on_paper: bool, words: tuple[str, str, str]) -> str:
    """Side by which a text hangs; by default plotly takes the nearest third of the paper."""
    if given in words:
        return str(given)
    return words[0 if place < 1 / 3 else 2 if place > 2 / 3 else 1] if on_paper else words[1]


def _legend(
    canvas: Figure, entries: dict[str, Any], width_px: int, height_px: int, margin: dict[str, Any]
) -> None:
    texts = [label(text) for text in entries]
    # 12 px text is about 7 px a character; a handle takes about 40 px
    columns = max(1, int((width_px - 20) // (max(map(len, texts)) * 7 + 40)))
    canvas.legend(
        list(entries.values()),
        texts,
        loc="lower left",
        bbox_to_anchor=(margin["l"] / width_px, 1 - (margin["t"] - 6) / height_px),
        borderaxespad=0,
        borderpad=0,
        ncol=min(columns, len(texts)),
        handlelength=2,
        columnspacing=1.4,
    )


def _clean(document: str, ident: str) -> str:
    """Only the element; ids unique in the page and only where used; colours as CSS variables."""
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    svg = re.sub(
        r' id="([^"]*)"',
        lambda m: f' id="{ident}-{m.group(1)}"' if m.group(1) in used else "",
        svg,
    )
    svg = re.sub(r'(url\(#|href="#)', lambda m: f"{m.group(1)}{ident}-", svg)
    for colour, variable in theme.variables().items():
        svg = svg.replace(colour, variable)
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font: \1 var(--tbt-font)", svg)
    for sign in "[]*`":  # the picture stands in a Markdown page
        svg = svg.replace(sign, f"&#{ord(sign)};")
    head, body = svg.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    return f"<svg {box.group() if box else ''}>" + re.sub(r"\s*\n\s*", "\n", body).strip()
