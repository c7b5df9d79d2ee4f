"""Which cells: chosen by their keys, and matched between two sides."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import duckdb

from harness.errors import HarnessError

# What two cells must share to stand beside each other, unless both sides say what they differ in.
LEVEL = (
    "sweep",
    "load",
    "in_flight",
    "rate_per_s",
    "capacity_frac",
    "burstiness",
    "prompt_tokens",
    "output_tokens",
    "kind",
    "extra",
)
KEYS = ("engine", "variant", *LEVEL, "processes")
WORK = ("session", "endpoint", "tokens added by the server", "model", "weights")


@dataclass(frozen=True, slots=True)
class Cells:
    """A choice of cells: every cell whose columns have these values, over all repeats.

    keys: of KEYS. said: what a sentence calls them; by default the variant or engine chosen.
    """

    keys: Mapping[str, Any]
    said: str = ""

    def __post_init__(self) -> None:
        for key in self.keys:
            if key not in KEYS:
                raise HarnessError(f"no cell has a key {key!r}; known: {', '.join(KEYS)}")

    @property
    def name(self) -> str:
        return self.said or str(self.keys.get("variant") or self.keys.get("engine") or self)

    def __str__(self) -> str:
        return ",".join(f"{key}={value}" for key, value in self.keys.items()) or "every cell"


@dataclass(frozen=True, slots=True)
class Row:
    """One chosen cell. level: its values of LEVEL. work: what equal work is about, by name."""

    cell_id: int
    repeat: int
    variant: str
    verdict: str
    reasons: tuple[str, ...]
    level: dict[str, Any] = field(hash=False)
    work: dict[str, Any] = field(hash=False)


def parse(text: str) -> Cells:
    """From the command line: "engine=vllm,in_flight=8"."""
    keys: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise HarnessError(f"{text!r}: write key=value, with commas between")
        keys[key.strip()] = _value(value.strip())
    return Cells(keys)


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def select(con: duckdb.DuckDBPyConnection, cells: Cells) -> list[Row]:
    """The chosen cells by repeat. Raises HarnessError, naming what there is, where none fits."""
    where = " AND ".join(f"c.{key} = ?" for key in cells.keys) or "true"
    columns = ", ".join(f"c.{key}" for key in LEVEL)
    try:
        rows = con.execute(
            f"SELECT cell_id, repeat, c.variant, verdict, reasons, {columns}, c.session_id,"
            " c.endpoint, c.added_tokens, m.model_id, m.weights_sha256"
            " FROM cell c LEFT JOIN engine_run r USING (run_id) LEFT JOIN model m USING (model_id)"
            f" WHERE {where} ORDER BY repeat, cell_id",
            list(cells.keys.values()),
        ).fetchall()
    except duckdb.ConversionException as error:
        raise HarnessError(f"{cells}: {str(error).splitlines()[0]}") from error
    if not rows:
        raise HarnessError(f"no cell fits {cells}. {_nearest(con, cells)}")
    n = 5 + len(LEVEL)
    return [
        Row(
            cell_id=row[0],
            repeat=row[1],
            variant=row[2],
            verdict=row[3],
            reasons=tuple(row[4]),
            level=_level(dict(zip(LEVEL, row[5:n], strict=True))),
            work=dict(zip(WORK, row[n:], strict=True)),
        )
        for row in rows
    ]


def _level(level: dict[str, Any]) -> dict[str, Any]:
    """A rate that was set as a share of each engine's own capacity is matched by that share."""
    return level if level["capacity_frac"] is None else level | {"rate_per_s": None}


def _nearest(con: duckdb.DuckDBPyConnection, cells: Cells) -> str:
    """Of the first key that no cell has: the values that there are."""
    for key, value in cells.keys.items():
        found = con.execute(f"SELECT DISTINCT {key} FROM cell ORDER BY ALL").fetchall()
        values = [each for (each,) in found]
        if str(value) not in map(str, values):
            return f"Recorded values of {key}: {', '.join(map(str, values))}"
    return "Each value is recorded, but not together"


SAID = {
    "in_flight": "{} in flight",
    "rate_per_s": "{:g} requests/s",
    "capacity_frac": "{:.0%} of capacity",
    "burstiness": "burstiness {:g}",
    "prompt_tokens": "{}-token prompts",
    "output_tokens": "{} output tokens",
    "processes": "{} load processes",
    "kind": "kind {}",
    "extra": "extra {}",
    "sweep": "sweep {}",
}


def place(level: Mapping[str, Any]) -> str:
    """A load level in words: "8 in flight, 512-token prompts, 64 output tokens, sweep closed"."""
    return ", ".join(
        said.format(level[key]) for key, said in SAID.items() if level.get(key) is not None
    )
