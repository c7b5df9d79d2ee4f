"""What an episode's analysis.toml declares, and the recordings it is read from."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from harness.errors import HarnessError
from harness.recording.store import connect
from harness.render import queries
from harness.render.source import Source

FILE = "analysis.toml"
T = TypeVar("T")


class Declared:
    """One kind of table of analysis.toml on one page."""

    kind: str

    def __init__(
        self, root: Path, folder: Path, sources: Mapping[str, Source], kept: queries.Cache
    ) -> None:
        self._root, self._path, self._sources, self._kept = root, folder / FILE, sources, kept

    def _read(
        self,
        name: str,
        tier: str,
        inputs: tuple[Any, ...],
        make: Callable[[duckdb.DuckDBPyConnection], T],
    ) -> T:
        """What `make` makes of the tier's recording, or what was kept of it under these inputs. A
        fault names the table and the recording."""
        entry = self._sources[tier].entry
        key, found = self._kept.get(
            self.kind, queries.code_hash(), entry.sha256, *map(repr, inputs)
        )
        if found is None:
            try:
                with connect(self._root / entry.file) as con:
                    found = self._kept.put(key, make(con))
            except HarnessError as error:
                raise HarnessError(f"{self.kind} {name}: {entry.file}: {error}") from error
        return found

    def _tier(self, tier: str) -> str:
        tier = tier or next(iter(self._sources))
        if tier not in self._sources:
            raise HarnessError(f"tier {tier!r} is not recorded: guard it with recorded({tier!r})")
        return tier

    def _table(self, name: str, needed: dict[str, type], **given: Any) -> dict[str, Any]:
        """[kind.name] of analysis.toml, with just these keys; `given` stands in for absent ones."""
        try:
            known = tomllib.loads(self._path.read_text(encoding="utf-8")).get(self.kind, {})
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise HarnessError(f"{self._path}: cannot be read: {error}") from error
        where = f"{self.kind}.{name}"
        if name not in known:
            raise HarnessError(f"{FILE} has no [{where}], only {', '.join(known) or 'none'}")
        table = given | known[name]
        if {key: type(value) for key, value in table.items()} != needed:
            kinds = ", ".join(f"{key} ({kind.__name__})" for key, kind in needed.items())
            raise HarnessError(f"{FILE}: [{where}] takes {kinds.replace('dict', 'table')}")
        return table
