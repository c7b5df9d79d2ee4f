"""episode.md -> Markdown: the names that an author can use, and nothing else.

    {{ n("ttft.p50_ms", ".1f", engine="vllm") }}   one number of a query; the keywords pick the row
    {{ value("ttft.p50_ms", engine="vllm") }}      the same as a value, for conditions
    {{ figure("ttft", caption="...") }}            a figure of charts.py
    {{ table("ttft", columns={...}) }}             a query as a table
    {{ declared("tier.cpu.repeats") }}             a value of experiment.toml
    {{ compare("ttft", in_flight=8) }}             of analysis.toml: see comparisons.py
    {{ goodput_table("chat") }}                    of analysis.toml: see objectives.py
    {{ cited("23,040 bytes", "SmolLM2's config", "https://...") }}
    {{ computed("2 * layers * heads", layers=value("model.layers"), heads=3) }}   see formula.py
    {{ try_it("first_token") }}                    a model of model.py: see try_it.py
    {% if recorded("gpu") %} ... {% endif %}       and {{ not_recorded("gpu") }}

An episode's text extends the spine and fills its blocks: see spine.py. n, value, table, figure and
try_it take tier="gpu"; without it they read the first recorded tier. Whatever an expression prints
is escaped unless it comes from one of these helpers.
"""

import hashlib
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError
from markupsafe import Markup

from harness.errors import HarnessError
from harness.render import charts, escape, figure, queries, source, spine
from harness.render.comparisons import Comparisons
from harness.render.figure import Picture
from harness.render.formula import Formulas
from harness.render.objectives import Objectives
from harness.render.registry import Chapter
from harness.render.try_it import TryIt


@dataclass(slots=True)
class Prose:
    """The text of one episode and all it refers to.

    sources: the newest recording of each recorded tier. data: JSON files that its figures need.
    """

    root: Path
    chapter: Chapter
    sources: dict[str, source.Source]
    kept: queries.Cache
    data: dict[str, str] = field(default_factory=dict)
    _cited_queries: dict[tuple[str, str], None] = field(default_factory=dict)
    _parts: tuple[Formulas | Comparisons | Objectives | TryIt, ...] = field(init=False)

    def __post_init__(self) -> None:
        place = (self.root, self.folder, self.sources, self.kept)
        tried = TryIt(self._models, self.chapter.number, self._cited_rows, self._tier)
        self._parts = (Formulas(), Comparisons(*place), Objectives(*place), tried)

    @property
    def folder(self) -> Path:
        return self.root / "episodes" / self.chapter.name

    @property
    def _models(self) -> list[Path]:
        return [self.folder / "model.py"]

    def check(self) -> None:
        """That episode.md is on the spine; errors name the file and the line or part."""
        try:
            spine.check(self._environment(), self._path)
        except TemplateError as error:
            raise self._fault(error) from error

    def episode(self) -> str:
        """The Markdown of an episode.md on the spine."""
        environment = self._environment()
        environment.filters["part"] = spine.part
        fixed = spine.given(self.root, self.folder, self.sources, self.kept)
        fixed["numbers"] = lambda: Markup(self._numbers("###"))
        return self._rendered(environment, fixed)

    def render(self) -> str:
        """The Markdown of an episode.md that stands by itself, as a demonstration's."""
        return self._rendered(self._environment(), {}) + self._numbers("##")

    @property
    def _path(self) -> Path:
        return self.folder / "episode.md"

    def _environment(self) -> Environment:
        return Environment(
            loader=FileSystemLoader([self.folder, spine.FOLDER]),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=finalize,
            keep_trailing_newline=True,
        )

    def _rendered(self, environment: Environment, given: dict[str, Any]) -> str:
        names = ("n", "value", "figure", "table", "declared", "cited", "recorded", "not_recorded")
        helpers = {name: getattr(self, name) for name in names}
        for each in self._parts:
            helpers |= each.helpers
        try:
            return environment.get_template(self._path.name).render(**helpers, **given)
        except (HarnessError, TemplateError) as error:
            raise self._fault(error) from error

    def _fault(self, error: Exception) -> HarnessError:
        line = getattr(error, "lineno", None) or _line(error, self._path)
        return HarnessError(f"{self._path}:{f'{line}:' if line else ''} {error}")

    def recorded(self, tier: str) -> bool:
        return tier in self.sources

    def not_recorded(self, tier: str) -> Markup:
        """A note with the command that would record the tier; nothing where it is recorded."""
        return Markup("") if tier in self.sources else Markup(missing(self.chapter, tier))

    def value(self, place: str, tier: str = "", **where: Any) -> Any:
        """One value: "query.column", from the only row or the only row that `where` picks."""
        name, _, column = place.partition(".")
        result = self._rows(name, tier)
        if column not in result.columns:
            raise HarnessError(f"{place}: the query has no such column, only {result.columns}")
        unknown = set(where) - set(result.columns)
        if unknown:
            raise HarnessError(
                f"{place}: the query has no column {sorted(unknown)[0]!r} to pick by"
            )
        found = [
            row for row in result.records() if all(row[key] == want for key, want in where.items())
        ]
        if len(found) != 1:
            raise HarnessError(f"{place}: {len(found)} rows fit {where or 'it'}, one is needed")
        return found[0][column]

    def n(self, place: str, fmt: str = "", tier: str = "", **where: Any) -> Markup:
        """One recorded number, with a link to the query it was read by."""
        value = self.value(place, tier, **where)
        tier, name = self._tier(tier), place.partition(".")[0]
        self._cited_rows(name, tier)
        said = f"recorded on {tier}, query {name}"
        return Markup(
            f'<a class="tbt-n" href="#{self._place(tier, name)}" title="{escape.inline(said)}">'
            f"{escape.inline(figure.cell_text(value, fmt))}</a>"
        )

    def table(
        self,
        name: str,
        columns: dict[str, str] | None = None,
        formats: dict[str, str] | None = None,
        caption: str = "",
        tier: str = "",
    ) -> Markup:
        """A query as a table. columns: {name: heading}; formats: {name: format}."""
        tier = self._tier(tier)
        result = self._cited_rows(name, tier)
        for column in columns or {}:
            if column not in result.columns:
                raise HarnessError(f"table {name}: the query has no column {column!r}")
        html = figure.table_html(result, caption=caption, columns=columns, formats=formats)
        badge, place = figure.badges(("recorded",), tier), self._place(tier, name)
        return Markup(
            f'\n\n<div class="tbt-block"><div class="tbt-kinds">{badge} '
            f'<a class="tbt-n" href="#{place}">query {escape.text(name)}</a></div>'
            f"{html}</div>\n\n"
        )

    def figure(
        self, name: str, caption: str = "", kind: str = "recorded", cited: str = "", tier: str = ""
    ) -> Markup:
        """A figure. kind: one of figure.KINDS, or several joined by "+"."""
        source_text, chart = self._chart(name)
        kinds = tuple(kind.split("+"))
        if set(kinds) - set(figure.KINDS):
            raise HarnessError(f"figure {name}: kind {kind!r}: use {', '.join(figure.KINDS)}")
        if ("cited" in kinds) != bool(cited):
            raise HarnessError(f"figure {name}: a cited figure, and only it, names its source")
        tier = self._tier(tier)
        rows = [(self._query(query), self._rows(query, tier)) for query in chart.queries]
        if "recorded" in kinds and not rows:
            raise HarnessError(f"figure {name}: is called recorded but takes no query")
        ident = self._ident(name, tier)
        picture = self._picture(chart, source_text, ident, rows, tier)
        self.data[ident] = picture.data
        meta = figure.Meta(ident, kinds, chart.title, caption or chart.title, tier, cited)
        version = hashlib.sha256(picture.data.encode()).hexdigest()[:8]
        html = figure.html(meta, picture, version, rows, self.sources[tier] if rows else None)
        return Markup(f"\n\n{html}\n\n")

    def chart_title(self, name: str) -> str:
        """First line of a chart's docstring."""
        return self._chart(name)[1].title

    def drawn(self, name: str) -> str:
        """The static picture of a chart on the first recorded tier."""
        source_text, chart = self._chart(name)
        tier = self._tier("")
        rows = [(self._query(query), self._rows(query, tier)) for query in chart.queries]
        return self._picture(chart, source_text, self._ident(name, tier), rows, tier).wide

    def declared(self, key: str, fmt: str = "") -> Markup:
        """A value of the episode's experiment.toml: "tier.cpu.sweep.0.output_tokens"."""
        path = self.folder / "experiment.toml"
        found: Any = tomllib.loads(path.read_text(encoding="utf-8"))
        for part in key.split("."):
            try:
                found = found[int(part)] if isinstance(found, list) else found[part]
            except (KeyError, IndexError, ValueError, TypeError) as error:
                raise HarnessError(f"declared {key!r}: {path.name} has no such key") from error
        return Markup(
            f'<span class="tbt-declared" title="declared in experiment.toml: {escape.inline(key)}">'
            f"{escape.inline(figure.cell_text(found, fmt))}</span>"
        )

    @staticmethod
    def cited(said: str, origin: str, url: str = "") -> Markup:
        """A published figure with its source; the link opens it."""
        inner = f'<span class="tbt-cited">{escape.inline(said)}</span>'
        if not url:
            return Markup(f"{inner} (cited: {escape.inline(origin)})")
        if not url.startswith(("https://", "http://")):
            raise HarnessError(f"cited {said!r}: {url!r} is no web address")
        return Markup(f'{inner} (<a href="{escape.text(url)}">cited: {escape.inline(origin)}</a>)')

    def _chart(self, name: str) -> tuple[str, charts.Chart]:
        source_text, known = charts.parse(self.folder / "charts.py")
        if name not in known:
            raise HarnessError(f"figure {name}: charts.py has no such function")
        return source_text, known[name]

    def _ident(self, name: str, tier: str) -> str:
        """Of a figure, in the page and as a file name."""
        suffix = "" if tier == "cpu" else f"-{tier}"
        return f"{self.chapter.number}-{name.replace('_', '-')}{suffix}"

    def _tier(self, tier: str) -> str:
        tier = tier or next(iter(self.sources))
        if tier not in self.sources:
            raise HarnessError(f"tier {tier!r} is not recorded: guard it with recorded({tier!r})")
        return tier

    def _query(self, name: str) -> queries.Query:
        known = _queries(self.folder / "queries.sql")
        if name not in known:
            raise HarnessError(f"queries.sql has no query {name!r}")
        return known[name]

    def _rows(self, name: str, tier: str = "") -> queries.Result:
        query, entry = self._query(name), self.sources[self._tier(tier)].entry
        key, found = self.kept.get("rows", queries.code_hash(), entry.sha256, query.sql)
        if found is None:
            file = f"episodes/{self.chapter.name}/queries.sql"
            found = self.kept.put(key, queries.run(self.root / entry.file, query, file))
        return found

    def _picture(
        self,
        chart: charts.Chart,
        source_text: str,
        ident: str,
        rows: list[tuple[queries.Query, queries.Result]],
        tier: str,
    ) -> Picture:
        inputs = [self.sources[tier].entry.sha256, *(query.sql for query, _ in rows)]
        key, found = self.kept.get("figure", queries.code_hash(), source_text, ident, *inputs)
        if found is None:
            frames = {query.name: result.frame() for query, result in rows}
            drawn = charts.call(self.folder / "charts.py", chart, frames, tier)
            found = self.kept.put(key, figure.draw(drawn, ident))
        return found

    def _cited_rows(self, name: str, tier: str) -> queries.Result:
        """The rows of a query that then stands in the closing section."""
        self._cited_queries[self._tier(tier), name] = None
        return self._rows(name, tier)

    def _place(self, tier: str, query: str = "") -> str:
        """The id, in the closing section, of a query or of the recording itself."""
        return f"source-{tier}-{query}" if query else f"recording-{tier}"

    def _numbers(self, level: str) -> str:
        """The closing section: each query, formula and comparison that the text rests on."""
        parts = [f"\n\n{level} Where the numbers come from\n"]
        for tier, name in self._cited_queries:
            source_ = self.sources[tier]
            parts.append(
                f'<details class="tbt-open" id="{self._place(tier, name)}"><summary>Query '
                f"<code>{name}</code> on {tier}: <code>{escape.text(source_.entry.recording_id)}"
                f"</code></summary>{source.sql_html(name, self._query(name).sql)}"
                f"{figure.table_html(self._rows(name, tier), caption=name)}</details>\n"
            )
        parts += [part for each in self._parts for part in each.closing()]
        for tier, source_ in self.sources.items():
            place = self._place(tier)
            parts.append(
                f'<details class="tbt-open" id="{place}"><summary>The recording on {tier}'
                f"</summary>{source.recording_html(source_)}</details>\n"
            )
        return "\n".join(parts)


def missing(chapter: Chapter, tier: str) -> str:
    """What stands where a tier has no recording."""
    return (
        f'\n\n<p class="tbt-missing">Not recorded yet on the {escape.text(tier)} tier. To record: '
        f"<code>{source.record_command(chapter.number)}</code> on such a machine.</p>\n\n"
    )


def _queries(path: Path) -> dict[str, queries.Query]:
    if not path.exists():
        raise HarnessError(f"{path} is missing")
    return queries.parse(
        path.read_text(encoding="utf-8"), f"episodes/{path.parent.name}/queries.sql"
    )


def finalize(value: Any) -> Any:
    """What an expression prints: escaped, unless a helper made it."""
    return value if isinstance(value, Markup) else Markup(escape.inline(value))


def _line(error: BaseException, path: Path) -> int:
    """Line of the template in which the error arose; 0 where it arose elsewhere."""
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
