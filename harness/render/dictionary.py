"""The data dictionary: every table, column and view of the schema with its comment.

It is made from the comments in schema.sql and views.sql, so it cannot disagree with them; a test
fails where a comment is missing.
"""

from dataclasses import dataclass
from pathlib import Path

import duckdb

from harness.render.escape import text
from harness.render.source import sql_html

RECORDING = Path(__file__).parents[1] / "recording"


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view. columns: (name, type, comment). sql: of a view, else ""."""

    name: str
    comment: str
    columns: tuple[tuple[str, str, str], ...]
    sql: str = ""


def read() -> list[Relation]:
    """All tables, then all views, in the order in which they are declared."""
    with duckdb.connect() as db:
        for file in ("schema.sql", "views.sql"):
            if (RECORDING / file).exists():
                db.execute((RECORDING / file).read_text(encoding="utf-8"))
        found = db.execute(
            "SELECT table_name, comment, '' FROM duckdb_tables() WHERE NOT internal"
            " ORDER BY table_oid"
        ).fetchall()
        found += db.execute(
            "SELECT view_name, comment, sql FROM duckdb_views() WHERE NOT internal"
            " ORDER BY view_oid"
        ).fetchall()
        return [
            Relation(name, comment or "", _columns(db, name), sql) for name, comment, sql in found
        ]


def uncommented(relations: list[Relation]) -> list[str]:
    """Names of tables, views and table columns that have no comment."""
    missing = [relation.name for relation in relations if not relation.comment]
    missing += [
        f"{relation.name}.{column}"
        for relation in relations
        if not relation.sql
        for column, _, comment in relation.columns
        if not comment
    ]
    return missing


def page() -> str:
    """The page in Markdown."""
    relations = read()
    tables = [relation for relation in relations if not relation.sql]
    views = [relation for relation in relations if relation.sql]
    parts = [
        '---\ntitle: "Data dictionary"\n---\n\n# Data dictionary\n',
        "A recording is one DuckDB file. Open it with `duckdb FILE` and ask it anything: the tables"
        " hold what was recorded, the views hold the metrics. Times end in `_ns` and are"
        " nanoseconds on the monotonic clock of the machine that recorded. This page is made from"
        " the comments in the schema, which are in every recording as well.\n",
        "## Tables\n",
        *(_relation(relation) for relation in tables),
    ]
    if views:
        parts += ["## Views\n", *(_relation(relation) for relation in views)]
    return "\n".join(parts)


def _columns(db: duckdb.DuckDBPyConnection, name: str) -> tuple[tuple[str, str, str], ...]:
    rows = db.execute(
        "SELECT column_name, data_type, coalesce(comment, '') FROM duckdb_columns()"
        " WHERE table_name = ? AND NOT internal ORDER BY column_index",
        [name],
    ).fetchall()
    return tuple(
        (column, kind.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"), comment)
        for column, kind, comment in rows
    )


def _relation(relation: Relation) -> str:
    meaning = any(comment for _, _, comment in relation.columns)
    head = '<th scope="col">Column</th><th scope="col">Type</th>'
    head += '<th scope="col">Meaning</th>' if meaning else ""
    rows = "".join(
        f"<tr><td><code>{text(name)}</code></td><td>{text(kind)}</td>"
        + (f"<td>{text(comment)}</td>" if meaning else "")
        + "</tr>"
        for name, kind, comment in relation.columns
    )
    comment = text(relation.comment).replace("\n", "<br>")
    sql = (
        f'<details class="tbt-open"><summary>Definition</summary>'
        f"{sql_html(relation.name, relation.sql)}</details>\n"
        if relation.sql
        else ""
    )
    return (
        f"### {relation.name} {{ #{relation.name} }}\n\n<p>{comment}</p>\n\n"
        '<div class="tbt-table tbt-whole" tabindex="0" role="group"'
        f' aria-label="columns of {relation.name}">'
        f'<table class="tbt-rows tbt-dictionary"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>\n\n{sql}"
    )
