"""The spine of every episode page: templates/spine.md, and what it needs to be filled.

An episode.md extends "spine.md" and fills its blocks. A part that is absent or empty stops the
build, and so does text outside of the blocks, which Jinja would lose without a word.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
from jinja2 import Environment, nodes
from markupsafe import Markup

from harness.errors import HarnessError
from harness.render import queries, source, theme
from harness.render.escape import text

TEMPLATE = "spine.md"
FOLDER = Path(__file__).parent / "templates"
FILES = {
    "episode.md": "the text of this page",
    "experiment.toml": "the declaration: what is run on each tier",
    "queries.sql": "the named queries;"
    ' <a href="#where-the-numbers-come-from">those that this page reads</a>',
    "charts.py": "the figures",
    "model.py": "the small models",
    "analysis.toml": "the comparisons and objectives",
}
# From each start of the harness to the end of its last cell, engine or job.
ACCOUNT = """
SELECT (SELECT any_value(experiment_toml) FROM recording), sum(seconds) FROM (
    SELECT (greatest(max(c.ended_ns), max(r.stopped_ns), max(j.ended_ns)) - any_value(s.started_ns))
        / 1e9 AS seconds
    FROM session s LEFT JOIN engine_run r USING (session_id) LEFT JOIN cell c USING (run_id)
    LEFT JOIN (SELECT session_id, max(ended_ns) AS ended_ns FROM job GROUP BY ALL) j
        USING (session_id)
    GROUP BY s.session_id)
"""
_HEADING = re.compile(r"^#{1,2}\s", re.MULTILINE)
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_LAYOUT = (nodes.Extends, nodes.Block, nodes.Macro, nodes.Import, nodes.FromImport)


def check(environment: Environment, path: Path) -> None:
    """That episode.md is the spine's parts and nothing else. Raises HarnessError naming file and
    part."""
    content = path.read_text(encoding="utf-8")
    body = environment.parse(content, path.name, str(path)).body
    if not body or not _extends(body[0]):
        raise HarnessError(f'{path}:1: must begin with {{% extends "{TEMPLATE}" %}}')
    for node in body:
        if not isinstance(node, _LAYOUT) and not _blank(node):
            raise HarnessError(f"{path}:{node.lineno}: stands in no part, so no page would have it")
    loader = environment.loader
    assert loader is not None
    known = environment.parse(loader.get_source(environment, TEMPLATE)[0])
    parts = [block.name for block in known.find_all(nodes.Block)]
    found = {block.name: block.lineno for block in body if isinstance(block, nodes.Block)}
    for name, line in found.items():
        if name not in parts:
            raise HarnessError(f"{path}:{line}: {name!r} is no part; the parts: {', '.join(parts)}")
    for name in parts:
        if name not in found:
            raise HarnessError(f"{path}: the part {name!r} is missing: {{% block {name} %}}")
    outside = _FENCED.sub(lambda fence: re.sub(r"[^\n]", " ", fence.group()), content)
    if heading := _HEADING.search(outside):
        line = outside.count("\n", 0, heading.start()) + 1
        raise HarnessError(f"{path}:{line}: a heading within a part begins with ###")


def part(content: Markup, name: str) -> Markup:
    """A filter of the template: the text of a part. Raises HarnessError where there is none."""
    if not content.strip():
        raise HarnessError(f"the part {name!r} is empty")
    return Markup(content.strip())


def given(
    root: Path, folder: Path, sources: Mapping[str, source.Source], kept: queries.Cache
) -> dict[str, Any]:
    """What the fixed parts of the template show."""
    declared = _declaration(folder / "experiment.toml")
    number = folder.name[:2]
    return {
        "command": Markup(source.record_command(number)),
        "tiers": [
            _tier(root, name, table, sources.get(name), kept)
            for name, table in declared.get("tier", {}).items()
        ],
        "files": [
            (Markup(f"<code>{text(file)}</code>"), said)
            for file, said in _files(root, folder, sources)
        ],
        "declarations": [
            _opened(tier, _account(root, of, kept)[0]) for tier, of in sources.items()
        ],
    }


def took_html(seconds: float, tier: str) -> Markup:
    """A duration, with a link to the account of the recording."""
    minutes = seconds / 60
    said = f"{minutes:.0f} minutes" if minutes < 100 else f"{minutes / 60:.1f} hours"
    where = text(tier)
    return Markup(
        f'<a class="tbt-n" href="#recording-{where}" title="recorded on {where}">{said}</a>'
    )


def _extends(node: nodes.Node) -> bool:
    return (
        isinstance(node, nodes.Extends)
        and isinstance(node.template, nodes.Const)
        and node.template.value == TEMPLATE
    )


def _blank(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Output) and all(
        isinstance(each, nodes.TemplateData) and not each.data.strip() for each in node.nodes
    )


def _declaration(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise HarnessError(f"{path}: cannot be read: {error}") from error


def _tier(
    root: Path, name: str, table: dict[str, Any], of: source.Source | None, kept: queries.Cache
) -> dict[str, Any]:
    """One tier as it is declared; where it is recorded, as it was declared then, which the file may
    say no more, with how long that took and on what."""
    found: dict[str, Any] = {"name": name, "recorded": of is not None}
    if of is not None:
        said, seconds = _account(root, of, kept)
        table = tomllib.loads(said).get("tier", {}).get(name, {})
        found |= {"took": took_html(seconds, name), "machine": of.entry.machine}
    found["engines"] = ", ".join(theme.name(engine) for engine in table.get("engines", ()))
    return found | {key: table.get(key, "–") for key in ("repeats", "model")}


def _account(root: Path, of: source.Source, kept: queries.Cache) -> tuple[str, float]:
    """The declaration as it was recorded, and the seconds that this took."""
    key, found = kept.get("spine", queries.code_hash(), of.entry.sha256)
    if found is None:
        with duckdb.connect(str(root / of.entry.file), read_only=True) as db:
            row = db.execute(ACCOUNT).fetchone()
        assert row is not None  # an aggregate always has one
        found = kept.put(key, (row[0], row[1] or 0.0))
    said, seconds = found
    return said, seconds


def _files(
    root: Path, folder: Path, sources: Mapping[str, source.Source]
) -> Iterable[tuple[str, Markup]]:
    for name, said in FILES.items():
        if (folder / name).exists():
            yield f"episodes/{folder.name}/{name}", Markup(said)
    for path in sorted(folder.glob("*.jsonl")):
        yield path.relative_to(root).as_posix(), Markup("a trace of arrivals")
    for tier, of in sources.items():
        entry = of.entry
        size = f"{entry.size_bytes / 1e6:.1f} MB"
        said = f"the recording on {text(tier)}: {size}, SHA-256 <code>{text(entry.sha256)}</code>"
        yield entry.file, Markup(f'{said}; <a href="#recording-{text(tier)}">its account</a>')


def _opened(tier: str, declaration: str) -> Markup:
    """The declaration in the recording, to be opened: what was run, whatever the file says now."""
    return Markup(
        f'<details class="tbt-open"><summary>The declaration that was recorded on {text(tier)}'
        f"</summary><pre><code>{text(declaration)}</code></pre></details>"
    )
