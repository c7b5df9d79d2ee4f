"""Comparisons on a page: declared in the episode's analysis.toml, made by harness.analysis.

    [compare.ttft]                               # analysis.toml
    a = { engine = "vllm", sweep = "closed" }    # keys of analysis.cells.KEYS; said = "..." renames
    b = { engine = "sglang" }                    # the level that one side names holds for both
    metric = "ttft"                              # of analysis.metrics.METRICS
    statistic = "p90"                            # or mean; without it p50

    {{ compare("ttft", in_flight=8) }}           the sentence; the keywords add to both sides' keys
    {{ compare("ttft", in_flight=8, refusal=True) }}          ... or why there is none
    {% if compared("ttft", in_flight=8).verdict == "better" %}            the same as a value
    {{ compare_table("ttft", "tpot", in_flight=[1, 2, 4, 8]) }}           a row a level, a column a
                                                 comparison; it takes refusal=True as well
    {{ proof_table("ttft", in_flight=8) }}       the proof of equal work, or what breaks it

A sentence opens like any figure: the proof of equal work, the repeats with their ratios and the
command stand below the page. A comparison that can't be made stops the build, unless refusal=True.
"""

import re
from itertools import product
from typing import Any

from markupsafe import Markup

from harness.analysis.cells import Cells
from harness.analysis.compare import NOT_COMPARABLE, Comparison, compare
from harness.errors import HarnessError
from harness.render import escape, figure, queries, theme
from harness.render.declared import Declared

NEEDED: dict[str, type] = {"statistic": str, "a": dict, "b": dict, "metric": str}
HOW = (
    "Requests are paired by prompt within a repeat. The ratio is the geometric mean over the"
    ' repeats; its <a href="../../method/#comparisons">interval</a> is the bootstrap-t over them.'
)


class Comparisons(Declared):
    """Those of one page. _shown: by id, the tier, the command line and what it gives."""

    kind = "compare"

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self._shown: dict[str, tuple[str, str, Comparison]] = {}

    @property
    def helpers(self) -> dict[str, Any]:
        """The names that a page can use."""
        names = ("compare", "compared", "compare_table", "proof_table")
        return {name: getattr(self, name) for name in names}

    def compared(self, name: str, tier: str = "", **keys: Any) -> Comparison:
        """The comparison itself: verdict, ratio, low, high, sentence."""
        return self._made(name, tier, True, keys)[1]

    def compare(self, name: str, tier: str = "", refusal: bool = False, **keys: Any) -> Markup:
        """The sentence, its figures linked to the proof."""
        ident, found = self._made(name, tier, refusal, keys)
        return _linked(found, ident, found.sentence)

    def compare_table(
        self, *names: str, caption: str = "", tier: str = "", refusal: bool = False, **keys: Any
    ) -> Markup:
        """A row for each combination of the listed keys' values, a column for each comparison."""
        lists = {key: each if isinstance(each, list) else [each] for key, each in keys.items()}
        rows: list[tuple[Any, ...]] = []
        heads: list[str] = []
        for values in product(*lists.values()):
            level = dict(zip(lists, values, strict=True))
            made = [self._made(name, tier, refusal, level) for name in names]
            heads = [f"{found.what}, {found.a} / {found.b}" for _, found in made]
            rows.append((*values, *(_linked(found, ident, found.brief) for ident, found in made)))
        columns = [key.replace("_", " ") for key in lists]
        return self._block(queries.Result([*columns, *heads], rows), caption, tier)

    def proof_table(self, name: str, caption: str = "", tier: str = "", **keys: Any) -> Markup:
        """What was compared to prove equal work, and what each side has; failed or not."""
        _, found = self._made(name, tier, True, keys)
        return self._block(_proof(found), caption or "The proof of equal work", tier)

    def _block(self, result: queries.Result, caption: str, tier: str) -> Markup:
        html = figure.table_html(result, caption=caption)
        badge = figure.badges(("recorded",), self._tier(tier))
        return Markup(
            f'\n\n<div class="tbt-block"><div class="tbt-kinds">{badge}</div>{html}</div>\n\n'
        )

    def closing(self) -> list[str]:
        """For the end of the page: proof, repeats and command of each comparison."""
        return [self._opened(ident, *shown) for ident, shown in self._shown.items()]

    def _made(
        self, name: str, tier: str, refusal: bool, keys: dict[str, Any]
    ) -> tuple[str, Comparison]:
        """Its id in the closing section, and the comparison."""
        tier = self._tier(tier)
        given = self._table(name, NEEDED, statistic="p50")
        a, b = (_cells(given[side], keys) for side in ("a", "b"))
        metric, statistic = given["metric"], given["statistic"]
        found = self._read(
            name, tier, (a, b, metric, statistic), lambda con: compare(con, a, b, metric, statistic)
        )
        if found.verdict == NOT_COMPARABLE and not refusal:
            raise HarnessError(
                f"compare {name}: {found.sentence} Mend the recording, or show the refusal: "
                "refusal=True"
            )
        command = (
            f"python -m harness compare {self._sources[tier].entry.file}"
            f" --a {a} --b {b} --metric {metric} --statistic {statistic}"
        )
        for ident, shown in self._shown.items():
            if shown[:2] == (tier, command):
                return ident, found
        ident = f"compare-{tier}-{len(self._shown) + 1}"
        self._shown[ident] = (tier, command, found)
        return ident, found

    def _opened(self, ident: str, tier: str, command: str, found: Comparison) -> str:
        unit = f", {found.unit}"
        pairs = queries.Result(
            ["repeat and level", "values", found.a + unit, found.b + unit, "ratio"],
            [(r.place, r.samples, r.a, r.b, r.ratio) for r in found.ratios],
        )
        tables = [figure.table_html(_proof(found), caption="The proof of equal work")]
        if found.ratios:
            tables.append(figure.table_html(pairs, caption=f"{found.what}, repeat by repeat"))
        recording = escape.text(self._sources[tier].entry.recording_id)
        return (
            f'<details class="tbt-open" id="{ident}"><summary>Comparison on {tier}:'
            f" {escape.text(found.what)}, {escape.text(found.a)} and {escape.text(found.b)},"
            f" <code>{recording}</code></summary><p>{HOW}</p>{''.join(tables)}"
            f"<p><code>{escape.text(command)}</code></p></details>\n"
        )


def _proof(found: Comparison) -> queries.Result:
    return queries.Result(
        ["equal work", found.a, found.b, "equal"],
        [(c.check, c.a, c.b, "yes" if c.equal else "no") for c in found.checks],
    )


def _cells(side: dict[str, Any], keys: dict[str, Any]) -> Cells:
    given = {key: value for key, value in side.items() if key != "said"}
    engine = given.get("variant") or given.get("engine")
    return Cells(given | keys, side.get("said") or (theme.name(engine) if engine else ""))


def _linked(found: Comparison, ident: str, said: str) -> Markup:
    """The text with its figures, or its refusal, as a link to the proof."""
    parts = re.split(r"(\d\S* (?:times .*?)?\[.*?\]|not comparable)", said, maxsplit=1)
    before, figures, after = (escape.inline(part) for part in parts)
    title = escape.inline(f"compared: {found.what} of {found.a} and {found.b}")
    link = f'<a class="tbt-n" href="#{ident}" title="{title}">{figures}</a>'
    return Markup(f"{before} {link}{after}".strip())
