"""One colour an engine, one marker a tier, in every picture; and the look all figures share.

Colours are Okabe and Ito's, which stay apart for colour-blind readers; each engine also has a dash
and each tier a marker, so that a figure can be read in grey print. The hex values below are those
of the light scheme: `tokens` turns them into CSS variables, whose values for both schemes are in
docs/assets/css/site.css (a test compares the two).
"""

import re
from pathlib import Path
from typing import Any

CSS = Path(__file__).parents[2] / "docs" / "assets" / "css" / "site.css"

ENGINE_COLOUR = {
    "vllm": "#0072b2",
    "sglang": "#c84b00",
    "transformers": "#007a5a",
    "external": "#a64d79",
    "emulator": "#6b6f76",
}
ENGINE_NAME = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "transformers": "Transformers",
    "external": "External server",
    "emulator": "Emulator",
}
ENGINE_DASH = {
    "vllm": "solid",
    "sglang": "dash",
    "transformers": "dot",
    "external": "dashdot",
    "emulator": "dot",
}
TIER_MARKER = {"cpu": "circle", "gpu": "diamond"}
PHASE_COLOUR = {"queue": "#8a8f98", "prefill": "#b57a00", "decode": "#5b5fc7"}
REFERENCE = "#5f6b7a"  # cited, computed and declared values: never an engine's colour

# Sentinels, one step off black so that no author picks them by accident.
INK = "#010203"
GRID = "#010204"

_VARIABLES = {
    **{colour: f"var(--tbt-{name})" for name, colour in ENGINE_COLOUR.items()},
    **{colour: f"var(--tbt-{name})" for name, colour in PHASE_COLOUR.items()},
    REFERENCE: "var(--tbt-reference)",
    INK: "var(--tbt-ink)",
    GRID: "var(--tbt-grid)",
}


def colour(engine: str) -> str:
    """The colour of an engine; that of references for a name it does not know."""
    return ENGINE_COLOUR.get(engine, REFERENCE)


def name(engine: str) -> str:
    """How an engine's name is written."""
    return ENGINE_NAME.get(engine, engine)


def fade(hex_colour: str, alpha: float) -> str:
    """The same colour, see-through, for bands: rgba(r,g,b,alpha)."""
    red, green, blue = (int(hex_colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"


def style(engine: str, tier: str = "cpu") -> dict[str, Any]:
    """Keyword arguments for one go.Scatter of an engine on a tier: name, line and marker."""
    return {
        "name": name(engine),
        "legendgroup": engine,
        "line": {"color": colour(engine), "dash": ENGINE_DASH.get(engine, "solid"), "width": 2},
        "marker": {
            "color": colour(engine),
            "symbol": TIER_MARKER.get(tier, "circle"),
            "size": 7,
        },
    }


def figure(x: str, y: str, *, log_x: bool = False, log_y: bool = False, height: int = 400) -> Any:
    """An empty plotly figure with titled axes. Titles carry the unit: "TTFT, ms"."""
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.update_layout(
        template=None,
        height=height,
        xaxis={"title": {"text": x}, "type": "log" if log_x else None},
        yaxis={"title": {"text": y}, "type": "log" if log_y else None},
    )
    return figure


def panes(x: str, ys: list[str], *, height: int, gap: float = 0.08) -> Any:
    """An empty figure of panes one above the other, with one x axis: y, y2, y3 from the top."""
    chart = figure(x, ys[0], height=height)
    share = (1 - gap * (len(ys) - 1)) / len(ys)
    for place, title in enumerate(ys):
        top = 1 - place * (share + gap)
        axis = {"title": {"text": title}, "domain": [max(top - share, 0), top]}
        chart.update_layout({f"yaxis{place + 1 if place else ''}": axis})
    chart.update_layout(xaxis={"anchor": f"y{len(ys)}" if len(ys) > 1 else "y"})
    return chart


def levels(chart: Any, names: list[str], start: int) -> None:
    """Gives a figure a slider: traces with meta={"level": i} show at level i alone. start: the
    level of the static picture."""
    chart.update_layout(meta={"levels": names, "start": start})


def variable(value: str) -> str:
    """One colour of a figure as the page's script and CSS know it.

    "#0072b2" -> "var(--tbt-vllm)"; "rgba(0,114,178,0.2)" -> "var(--tbt-vllm) 0.2".
    A colour that is none of ours stays as it is.
    """
    if value.startswith("rgba("):
        parts = value[5:-1].split(",")
        base = "#" + "".join(f"{int(part):02x}" for part in parts[:3])
        return f"{_VARIABLES[base]} {parts[3].strip()}" if base in _VARIABLES else value
    return _VARIABLES.get(value.lower(), value)


def variables() -> dict[str, str]:
    """Every colour of ours and its CSS variable."""
    return dict(_VARIABLES)


def css_colours(scheme: str) -> dict[str, str]:
    """The colours of a scheme, "light" or "dark", by the name of their CSS variable."""
    css = CSS.read_text(encoding="utf-8")
    block = css[css.index(":root" if scheme == "light" else '[data-md-color-scheme="slate"]') :]
    return dict(re.findall(r"(--tbt-\w+): (#[0-9a-f]{6});", block[: block.index("}")]))


def dress(figure: dict[str, Any]) -> dict[str, Any]:
    """The look every figure shares, under whatever the author set. Changes and returns `figure`."""
    layout = figure.setdefault("layout", {})
    layout.pop("template", None)
    layout.pop("title", None)  # the caption is the title
    layout.setdefault("height", 400)
    layout["paper_bgcolor"] = layout["plot_bgcolor"] = "rgba(0,0,0,0)"
    layout["font"] = {"size": 13, "color": INK} | layout.get("font", {})
    layout["margin"] = {"l": 56, "r": 12, "t": 36, "b": 48} | layout.get("margin", {})
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"}
    layout["legend"] = legend | layout.get("legend", {})
    layout.setdefault("hovermode", "closest")
    layout.setdefault("xaxis", {})
    layout.setdefault("yaxis", {})
    for key, axis in layout.items():
        if key.startswith(("xaxis", "yaxis")):
            look = {"gridcolor": GRID, "linecolor": GRID, "zeroline": False, "automargin": True}
            layout[key] = look | axis
    return figure
