"""queries.sql -> named queries, and their rows from a recording.

A query file is a list of blocks, each begun by a line `-- name: ident` and holding one SELECT.
Comment lines right after the name describe the query. A block begun by `-- part: ident` is a SELECT
that others use as a table: a line `-- uses: ident, ident` in a block puts those parts before it as
common table expressions, so that what two queries work out is written once. A recording is opened
read-only, and with no access to files or the network, because a query file may come with somebody
else's recording.
"""

import hashlib
import pickle
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from harness.errors import HarnessError

if TYPE_CHECKING:
    from pandas import DataFrame

_BLOCK = re.compile(r"^--\s*(name|part):\s*(\S.*?)\s*$")
_USES = re.compile(r"^--\s*uses:\s*(\S.*?)\s*$")
_WITH = re.compile(r"^WITH\s+", re.IGNORECASE)
_IDENT = re.compile(r"^[a-z][a-z0-9_]*$")


@dataclass(frozen=True, slots=True)
class Query:
    """One named SELECT; sql keeps its comments, because readers see it."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of one query from one recording, as Python values (NULL is None)."""

    columns: list[str]
    rows: list[tuple[Any, ...]]

    def records(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def frame(self) -> "DataFrame":
        """The rows for a chart, its text escaped: Plotly reads some HTML tags in text."""
        import html

        import pandas

        rows = [
            [html.escape(cell, quote=False) if isinstance(cell, str) else cell for cell in row]
            for row in self.rows
        ]
        return pandas.DataFrame(rows, columns=self.columns)


@dataclass(slots=True)
class _Block:
    """A query or a part as it stands in the file. head: its comments; uses: names of parts."""

    is_part: bool
    head: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)


def parse(text: str, file: str) -> dict[str, Query]:
    """The queries of a file by name, with the parts that they use written out. Raises HarnessError
    naming file and line."""
    blocks: dict[str, _Block] = {}
    current: _Block | None = None
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{file}:{number}"
        if begun := _BLOCK.match(line):
            current = blocks[_new_name(begun[2], blocks, place)] = _Block(begun[1] == "part")
        elif current is not None:
            _add(line, current, blocks, place)
        elif line.strip() and not line.lstrip().startswith("--"):
            raise HarnessError(f"{place}: SQL before the first `-- name:` line")
    for name, block in blocks.items():
        block.body = "\n".join(block.body).strip().rstrip(";").rstrip().splitlines()
        if not [line for line in block.body if line and not line.startswith("--")]:
            raise HarnessError(f"{file}: the query {name!r} is empty")
    return {
        name: Query(name, _written_out(block, blocks))
        for name, block in blocks.items()
        if not block.is_part
    }


def _new_name(name: str, blocks: dict[str, _Block], place: str) -> str:
    if not _IDENT.match(name):
        raise HarnessError(f"{place}: {name!r} is no name: use a-z, 0-9 and _")
    if name in blocks:
        raise HarnessError(f"{place}: a second query is named {name!r}")
    return name


def _add(line: str, block: _Block, blocks: dict[str, _Block], place: str) -> None:
    """Puts a line where it belongs in the block that is being read."""
    if used := _USES.match(line):
        for name in re.split(r"\s*,\s*", used[1]):
            if name not in blocks or not blocks[name].is_part:
                raise HarnessError(f"{place}: no part above is named {name!r}")
            block.uses.append(name)
    elif line.startswith("--") and not block.body:
        block.head.append(line)
    else:
        block.body.append(line)


def _written_out(block: _Block, blocks: dict[str, _Block]) -> str:
    """The SQL with its parts, and theirs, before it: those that stand first in the file first."""
    needed, todo = set[str](), list(block.uses)
    while todo:
        name = todo.pop()
        needed.add(name)
        todo += blocks[name].uses
    parts = [
        "\n".join([*blocks[name].head, f"{name} AS (", *blocks[name].body, ")"])
        for name in blocks
        if name in needed
    ]
    body = "\n".join(block.body)
    if not parts:
        return "\n".join([*block.head, body])
    own = _WITH.sub("", body, count=1)
    joined = "WITH " + ",\n".join(parts) + (",\n" if own != body else "\n") + own
    return "\n".join([*block.head, joined])


def run(recording: Path, query: Query, file: str) -> Result:
    """Runs one query. Raises HarnessError naming the file, the query and the recording."""
    try:
        with duckdb.connect(str(recording), read_only=True) as db:
            db.execute("SET TimeZone = 'UTC'; SET enable_external_access = false")
            db.execute("SET lock_configuration = true")
            statements = db.extract_statements(query.sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise HarnessError(f"{file}: the query {query.name!r} must be one SELECT")
            cursor = db.execute(statements[0])
            columns = [column[0] for column in cursor.description]
            return Result(columns, cursor.fetchall())
    except duckdb.Error as error:
        raise HarnessError(
            f"{file}: the query {query.name!r} fails on {recording.name}: {error}"
        ) from error


@cache
def code_hash() -> str:
    """Hash of the package's own code: a change of it makes everything kept worthless."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Cache:
    """Results kept between builds under .cache/render, by the hash of all that went into them.

    Entries that a build did not use are removed by `prune`. Deleting the folder is always safe.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / ".cache" / "render"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._used: set[str] = set()

    def get(self, *parts: str) -> tuple[str, Any | None]:
        """The key of these inputs, and what was kept under it or None."""
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
        self._used.add(key)
        path = self._folder / key
        try:
            return key, pickle.loads(path.read_bytes())
        except Exception:  # absent, torn or of another version: all mean "not cached"
            return key, None

    def put(self, key: str, value: Any) -> Any:
        draft = self._folder / f"{key}.draft"
        draft.write_bytes(pickle.dumps(value))
        draft.replace(self._folder / key)
        return value

    def prune(self) -> None:
        for path in self._folder.iterdir():
            if path.name not in self._used:
                path.unlink()
