"""Goodput and cost on a page: declared in the episode's analysis.toml, made by harness.analysis.

    [slo.chat]                                   # analysis.toml
    cells = { sweep = "open" }                   # keys of analysis.cells.KEYS
    bounds = { ttft_from_scheduled = 500, tpot = 100 }        # ms, by request metric

    {{ goodput_table("chat", in_flight=[1, 8]) }}  {{ cost_table("chat") }}     a row an engine and
                                                 level, of those that the keywords pick
    {{ goodput("chat", "met_percent", ".0f", variant="vllm", capacity_frac=0.9) }}   one number

The columns to pick by and to show are those of _record; all of them stand below the page.
"""

from typing import Any

import duckdb
from markupsafe import Markup

from harness.analysis.cells import LEVEL, Cells, place
from harness.analysis.cost import Cost, cost, declared_price
from harness.analysis.goodput import Slo
from harness.analysis.metrics import metric
from harness.errors import HarnessError
from harness.render import escape, figure, theme
from harness.render.declared import Declared
from harness.render.queries import Result

GOODPUT = {
    "name": "engine",
    "at": "load",
    "requests": "requests",
    "failed": "failed",
    "met_percent": "met all, %",
    "lowest_percent": "lowest repeat, %",
    "highest_percent": "highest repeat, %",
    "met_per_s": "met all, requests/s",
}
COST = {
    "name": "engine",
    "at": "load",
    "usd_million_measured": "USD a million output tokens, measured phases",
    "usd_million_held": "with start-up, warm-up and idle",
    "usd_thousand_met_measured": "USD a thousand requests that met all, measured phases",
    "usd_thousand_met_held": "with start-up, warm-up and idle",
}
FORMATS = {"met_per_s": ".3g"} | dict.fromkeys(
    ("met_percent", "lowest_percent", "highest_percent"), ".0f"
)
NEEDED: dict[str, type] = {"cells": dict, "bounds": dict}
HOW = (
    "A request met the objective where it succeeded and each of its values is at most its bound;"
    " a failed one, and one without a value, did not. INVALID cells are left out. Cost is the"
    " declared price times the time attributed: the measured phases alone, or all the time from the"
    " engine's start to its stop, which the cells of a run share by their measured phases."
)


class Objectives(Declared):
    """Those of one page. _shown: by id, the tier, the name and the rows."""

    kind = "slo"

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self._shown: dict[str, tuple[str, str, Result]] = {}

    @property
    def helpers(self) -> dict[str, Any]:
        """The names that a page can use."""
        return {name: getattr(self, name) for name in ("goodput", "goodput_table", "cost_table")}

    def goodput_table(self, name: str, caption: str = "", tier: str = "", **where: Any) -> Markup:
        """Requests that met each bound, and all, by engine and level; the keywords pick rows."""
        limits = self._table(name, NEEDED)["bounds"]
        places = list(GOODPUT)[:4]
        columns = {key: GOODPUT[key] for key in places} | _bounds(limits) | GOODPUT
        return self._block(name, caption or "Goodput", tier, where, columns, "recorded")

    def cost_table(self, name: str, caption: str = "", tier: str = "", **where: Any) -> Markup:
        """What output tokens and good requests cost, by engine and level, at the declared price."""
        return self._block(name, caption or "Cost", tier, where, COST, "recorded", "computed")

    def goodput(
        self, name: str, column: str, fmt: str = "", tier: str = "", **where: Any
    ) -> Markup:
        """One number of the table, linked to it; the keywords pick its row."""
        ident, result = self._rows(name, tier)
        fit = _fitting(name, result, where, column)
        if len(fit) != 1:
            raise HarnessError(f"goodput {name}: {len(fit)} rows fit {where}, one is needed")
        shown = escape.inline(figure.cell_text(fit[0][column], fmt))
        return Markup(f'<a class="tbt-n" href="#{ident}">{shown}</a>')

    def _block(
        self,
        name: str,
        caption: str,
        tier: str,
        where: dict[str, Any],
        columns: dict[str, str],
        *kinds: str,
    ) -> Markup:
        ident, every = self._rows(name, tier)
        rows = [tuple(row.values()) for row in _fitting(name, every, where)]
        result = Result(every.columns, rows)
        formats = FORMATS | {key: ".0f" for key in columns if key.endswith("_percent")}
        html = figure.table_html(result, caption=caption, columns=columns, formats=formats)
        link = f'<a class="tbt-n" href="#{ident}">objective {escape.text(name)}</a>'
        return Markup(
            f'\n\n<div class="tbt-block"><div class="tbt-kinds">'
            f"{figure.badges(kinds, self._tier(tier))} {link}</div>{html}</div>\n\n"
        )

    def _rows(self, name: str, tier: str) -> tuple[str, Result]:
        """Id in the closing section, and the rows."""
        tier = self._tier(tier)
        given = self._table(name, NEEDED)
        cells, limits = Cells(given["cells"]), given["bounds"]
        found = self._read(name, tier, (cells, limits), lambda con: _result(con, cells, limits))
        self._shown[f"slo-{tier}-{name}"] = (tier, name, found)
        return f"slo-{tier}-{name}", found

    def closing(self) -> list[str]:
        """For the end of the page: all that is known of each row."""
        return [
            f'<details class="tbt-open" id="{ident}"><summary>Objective <code>{escape.text(name)}'
            f"</code> on {tier}</summary><p>{HOW}</p>{figure.table_html(result, caption=name)}"
            "</details>\n"
            for ident, (tier, name, result) in self._shown.items()
        ]


def _result(con: duckdb.DuckDBPyConnection, cells: Cells, slo: Slo) -> Result:
    """Everything that is known of each row; GOODPUT and COST choose from it."""
    found = cost(con, cells, slo, declared_price(con))
    varying = [key for key in LEVEL if len({each.goodput.level[key] for each in found}) > 1]
    records = [_record(each, slo, varying) for each in found]
    return Result(list(records[0]), [tuple(record.values()) for record in records])


def _fitting(name: str, result: Result, where: dict[str, Any], *more: str) -> list[dict[str, Any]]:
    """The rows whose columns have these values, or one of them where a list is given."""
    if unknown := {*more, *where} - set(result.columns):
        raise HarnessError(f"slo {name}: no column {min(unknown)!r}, only {result.columns}")
    lists = {key: each if isinstance(each, list) else [each] for key, each in where.items()}
    found = [r for r in result.records() if all(r[key] in lists[key] for key in lists)]
    if not found:
        raise HarnessError(f"slo {name}: no row fits {where}")
    return found


def _bounds(slo: Slo) -> dict[str, str]:
    """A column for each bound, with its heading."""
    return {
        f"{name}_percent": f"{metric(name, ('request',)).said} ≤ {limit:g} ms, %"
        for name, limit in slo.items()
    }


def _record(each: Cost, slo: Slo, varying: list[str]) -> dict[str, Any]:
    good = each.goodput
    shares = [100 * met.met_frac for met in good.repeats]
    return {
        "variant": good.variant,
        "name": theme.name(good.variant),
        **good.level,
        "at": place({key: good.level[key] for key in varying}) or "all",
        "requests": good.requests,
        "failed": good.failed,
        "met": good.met,
        **{f"{name}_percent": 100 * good.met_each_frac(name) for name in slo},
        "met_percent": 100 * good.met_frac,
        "lowest_percent": min(shares),
        "highest_percent": max(shares),
        "met_per_s": good.met_per_s,
        "output_tokens": each.output_tokens,
        "measured_s": each.measured_s,
        "held_s": each.held_s,
        "usd_million_measured": each.usd_per_million_tokens(each.measured_s),
        "usd_million_held": each.usd_per_million_tokens(each.held_s),
        "usd_thousand_met_measured": each.usd_per_thousand_met(each.measured_s),
        "usd_thousand_met_held": each.usd_per_thousand_met(each.held_s),
    }
