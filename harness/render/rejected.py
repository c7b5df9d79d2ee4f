"""INVALID cells: what each was, why it was rejected, and the figures around it.

They enter no metric, and are shown all the same: a reader can see what was thrown away.
"""

from collections.abc import Sequence
from typing import Any

from harness.render.escape import text
from harness.render.figure import badges, table_html
from harness.render.queries import Result
from harness.render.source import Source

COLUMNS = {
    "cell": "cell",
    "reasons": "why",
    "requests": "requests",
    "failed": "failed",
    "ttft_ms": "TTFT p50 from scheduled, ms",
    "lag_ms": "sent late, p99, ms",
    "client_percent": "client, % of its core",
}
FORMATS = {"ttft_ms": ",.1f", "lag_ms": ",.2f", "client_percent": ".1f"}


def page(shown: Sequence[tuple[str, str, Source]]) -> str:
    """The page's Markdown, without its front matter. shown: title, link and source of each
    recording that is finished."""
    parts = [
        "# Rejected runs\n",
        '<p class="tbt-lead">Every cell of every recording that was judged INVALID, with the reason'
        " and the figures around it. None of them enters a metric or a comparison.</p>\n",
        "What each reason means stands under [Verdicts](../method.md#verdicts). A cell that is"
        " rejected is not repeated until it fits: the level is shown with the repeats that are"
        " left.\n",
    ]
    cells = sum(source.entry.valid_cells + source.entry.invalid_cells for _, _, source in shown)
    bad = [each for each in shown if each[2].rejected]
    count = sum(len(source.rejected) for _, _, source in bad)
    parts.append(f"Recordings: {len(shown)}. Cells: {cells}, of which INVALID: {count}.\n")
    for title, link, source in bad:
        kind = badges(("recorded",), source.label)
        parts.append(f"## {text(title)}\n")
        parts.append(
            f'<div class="tbt-block"><div class="tbt-kinds">{kind} <a href="{link}">the page</a>'
            f"</div>{_table(source)}</div>\n"
        )
    return "\n".join(parts)


def _table(source: Source) -> str:
    rows: list[tuple[Any, ...]] = [
        (r.cell, "; ".join(r.reasons), r.requests, r.failed, r.ttft_ms, r.lag_ms, r.client_percent)
        for r in source.rejected
    ]
    return table_html(
        Result(list(COLUMNS), rows), caption=source.entry.file, columns=COLUMNS, formats=FORMATS
    )
