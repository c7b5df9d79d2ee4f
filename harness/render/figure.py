"""The figure: a static picture and a table in the page, Plotly when it comes near the screen.

Every figure says what kind it is and opens: the recording, the machine, the engines' command lines,
the SQL and the command that records it again stand under it. The script (docs/assets/js/charts.js)
finds the figure by `data-figure` and fetches docs/assets/data/<id>.json, at most 15 KB.
"""

import json
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from harness.errors import HarnessError
from harness.render import svg, theme
from harness.render.escape import text
from harness.render.plain import plain, rounded
from harness.render.queries import Query, Result
from harness.render.source import Source, recording_html, sql_html

KINDS = ("recorded", "cited", "computed", "simulated")
DATA_LIMIT_BYTES = 15_000
LEVELS_LIMIT_BYTES = 45_000  # of a figure with a slider, which holds all of its levels
TABLE_LIMIT_ROWS = 60
WIDE_PX, NARROW_PX = 720, 360


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn figure: the JSON for the browser and one picture for each width of the page.

    level: name of the level that the pictures show, of a figure that has a slider; else "".
    """

    data: str
    wide: str
    narrow: str
    height_px: int
    level: str = ""


@dataclass(frozen=True, slots=True)
class Meta:
    """What is said of a figure. title: for those who can't see it. cited: source of a cited one."""

    ident: str
    kinds: tuple[str, ...]
    title: str
    caption: str
    tier: str
    cited: str = ""


def draw(figure: Any, ident: str) -> Picture:
    """From a plotly figure. Raises HarnessError where its data is too large for a page."""
    dressed = theme.dress(plain(figure.to_dict()))
    data = json.dumps(_variables(dressed), separators=(",", ":"), ensure_ascii=False)
    size = len(data.encode())
    levels = dressed["layout"].get("meta")
    limit = LEVELS_LIMIT_BYTES if levels else DATA_LIMIT_BYTES
    if size > limit:
        raise HarnessError(
            f"figure {ident}: its data is {size:,} bytes, the limit is {limit:,}: "
            "let its query aggregate or thin the rows"
        )
    return Picture(
        data=data,
        wide=svg.draw(dressed, f"{ident}-w", WIDE_PX),
        narrow=svg.draw(dressed, f"{ident}-n", NARROW_PX),
        height_px=int(dressed["layout"]["height"]),
        level=levels["levels"][levels["start"]] if levels else "",
    )


def html(
    meta: Meta,
    picture: Picture,
    version: str,
    rows: list[tuple[Query, Result]],
    source: Source | None,
) -> str:
    """The <figure> element. rows: the queries it was drawn from, with their results."""
    ident = text(meta.ident)
    tables = "".join(table_html(result, caption=query.name) for query, result in rows)
    parts = [
        f'<figure class="tbt-figure" id="{ident}">',
        f'<div class="tbt-kinds">{badges(meta.kinds, meta.tier)}</div>',
        f'<div class="tbt-slider">Shown: {text(picture.level)}</div>' if picture.level else "",
        f'<div class="tbt-plot" data-figure="{ident}" data-version="{version}"'
        f' style="height:{picture.height_px}px" role="img" aria-label="{text(meta.title)}">',
        f'<div class="tbt-wide" aria-hidden="true">{picture.wide}</div>',
        f'<div class="tbt-narrow" aria-hidden="true">{picture.narrow}</div>',
        "</div>",
        f"<figcaption>{meta.caption}</figcaption>",
        f'<details class="tbt-open"><summary>The rows</summary>{tables}</details>' if rows else "",
        _origin(meta, [query for query, _ in rows], source),
        "</figure>",
    ]
    return "\n".join(part for part in parts if part)


def badges(kinds: tuple[str, ...], tier: str) -> str:
    """One label a kind; "recorded" says on which tier. What the emulator did is no engine's."""
    emulated = tier == "emulator"
    said = "simulated: recorded from the emulator" if emulated else f"recorded on {text(tier)}"
    labels = {"recorded": ("simulated" if emulated else "recorded", said)}
    shown = (labels.get(kind, (kind, kind)) for kind in kinds)
    return " ".join(f'<span class="tbt-kind tbt-kind-{k}">{said}</span>' for k, said in shown)


def table_html(
    result: Result,
    *,
    caption: str = "",
    columns: dict[str, str] | None = None,
    formats: dict[str, str] | None = None,
) -> str:
    """Rows as a table, at most 60, its text escaped (Markup is not). columns: which, in order, with
    headings."""
    shown = columns or {name: name for name in result.columns}
    records = result.records()
    head = "".join(f'<th scope="col">{text(title)}</th>' for title in shown.values())
    body = "".join(
        "<tr>"
        + "".join(_cell(row[name], (formats or {}).get(name, "")) for name in shown)
        + "</tr>"
        for row in records[:TABLE_LIMIT_ROWS]
    )
    left = len(records) - TABLE_LIMIT_ROWS
    more = f'<p class="tbt-more">{left} more rows are in the recording.</p>' if left > 0 else ""
    title = f"<caption>{text(caption)}</caption>" if caption else ""
    return (
        '<div class="tbt-table" tabindex="0" role="group"'
        f' aria-label="{text(caption or "table")}">'
        f'<table class="tbt-rows">{title}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>{more}</div>"
    )


def cell_text(value: Any, spec: str = "") -> str:
    """One value as a page prints it, not yet escaped."""
    if value is None:
        return "–"
    if spec and isinstance(value, int | float):
        return format(value, spec)
    if isinstance(value, float):
        return f"{rounded(float(f'{value:.4g}'))}"
    if isinstance(value, list):
        return ", ".join(cell_text(item) for item in value[:8]) + (" …" if len(value) > 8 else "")
    return str(value)


def _cell(value: Any, spec: str) -> str:
    numeric = ' class="tbt-num"' if isinstance(value, int | float) else ""
    shown = value if isinstance(value, Markup) else text(cell_text(value, spec))
    return f"<td{numeric}>{shown}</td>"


def _origin(meta: Meta, queries: list[Query], source: Source | None) -> str:
    """The disclosure under a figure."""
    kinds = {
        "recorded": "Read from a recording at build by the queries below.",
        "cited": f"A published figure: {meta.cited}",
        "computed": "A formula over declared or recorded inputs.",
        "simulated": "The output of a simulation, not of an engine.",
    }
    if meta.tier == "emulator":
        kinds["recorded"] = "From the emulator and no engine; read at build by the queries below."
    said = "".join(f"<dt>Kind: {kind}</dt><dd>{kinds[kind]}</dd>" for kind in meta.kinds)
    body = f'<dl class="tbt-source">{said}</dl>'
    body += "".join(sql_html(query.name, query.sql) for query in queries)
    if source is not None:
        body += recording_html(source)
    return (
        '<details class="tbt-open"><summary>Where this comes from</summary>'
        f'{body}<p><a href="#{text(meta.ident)}">Link to this figure</a></p></details>'
    )


def _variables(value: Any) -> Any:
    """Our colours as the CSS variables that the script resolves in either scheme."""
    if isinstance(value, dict):
        return {key: _variables(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_variables(item) for item in value]
    return theme.variable(value) if isinstance(value, str) else value
