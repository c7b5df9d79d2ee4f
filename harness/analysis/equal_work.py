"""The proof that two choices of cells did equal work, or the first thing in which they did not.

Equal work: in the same session, on the same model and endpoint, the same prompts were asked, repeat
by repeat and level by level; the server counted the same prompt tokens and the same output tokens
for each; and both cells are VALID. A repeat in which either side is INVALID is left out of both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from harness.analysis.cells import LEVEL, Cells, Row, place, select
from harness.errors import HarnessError

# Requests of paired cells, matched by prompt; a prompt that was asked twice, by which time it was.
PAIRED = """
WITH pair(n, a_cell, b_cell) AS (VALUES {pairs}),
side AS (
    SELECT cell_id, request_id, prompt_hash, prompt_tokens, output_tokens,
        row_number() OVER (PARTITION BY cell_id, prompt_hash ORDER BY request_id) AS nth
    FROM request WHERE phase = 'measured' AND cell_id IN ({cells})),
paired AS (
    SELECT n, a.cell_id AS a_cell, a.request_id AS a_request, b.cell_id AS b_cell,
        b.request_id AS b_request, a.prompt_hash AS a_hash, b.prompt_hash AS b_hash,
        a.prompt_tokens AS a_in, b.prompt_tokens AS b_in,
        a.output_tokens AS a_out, b.output_tokens AS b_out
    FROM (SELECT n, side.* FROM pair JOIN side ON cell_id = a_cell) a
    FULL JOIN (SELECT n, side.* FROM pair JOIN side ON cell_id = b_cell) b
        USING (n, prompt_hash, nth))
"""
COUNTS = """
SELECT count(a_request), count(b_request), count(*) FILTER (a_request + b_request IS NOT NULL),
    count(*) FILTER (a_in IS DISTINCT FROM b_in OR a_in IS NULL),
    count(*) FILTER (a_out IS DISTINCT FROM b_out OR a_out IS NULL),
    sum(a_in)::BIGINT, sum(b_in)::BIGINT, sum(a_out)::BIGINT, sum(b_out)::BIGINT,
    sum(a_hash) % 4294967296, sum(b_hash) % 4294967296
FROM paired GROUP BY n ORDER BY n
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """The cells of both sides in one repeat at one level. level: what they share of it."""

    repeat: int
    level: dict[str, Any] = field(hash=False)
    a: Row
    b: Row

    @property
    def place(self) -> str:
        return ", ".join(part for part in (f"repeat {self.repeat}", place(self.level)) if part)


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the proof: what was compared, what each side has, whether it is the same."""

    check: str
    a: str
    b: str
    equal: bool


@dataclass(frozen=True, slots=True)
class Proof:
    """pairs: those that may be compared. left_out: repeats with an INVALID cell.
    inequality: the first that was found; None where the work was equal."""

    checks: tuple[Check, ...]
    pairs: tuple[Pair, ...]
    left_out: tuple[int, ...]
    inequality: str | None


def prove(con: duckdb.DuckDBPyConnection, a: Cells, b: Cells) -> Proof:
    """Raises HarnessError where a choice fits no cell, or several in one repeat at one level."""
    pairs, lone = _match(a, select(con, a), b, select(con, b))
    bad = [p for p in pairs if p.a.verdict != "VALID" or p.b.verdict != "VALID" or _apart(p)]
    left_out = tuple(dict.fromkeys(pair.repeat for pair in bad))
    kept = tuple(pair for pair in pairs if pair.repeat not in left_out)
    found = [_cells(pairs, lone, a, b), _verdicts(pairs, kept, bad, a, b)]
    if kept:
        found += [*_same(kept, a, b), *_counted(con, kept, a, b)]
    first = next((fault for _, fault in found if fault), None)
    return Proof(tuple(check for check, _ in found), kept, left_out, first)


def paired_sql(pairs: Sequence[Pair]) -> str:
    """The common table expressions that give `pair` and `paired` for these pairs."""
    ids = ", ".join(f"({n}, {pair.a.cell_id}, {pair.b.cell_id})" for n, pair in enumerate(pairs))
    cells = ", ".join(str(row.cell_id) for pair in pairs for row in (pair.a, pair.b))
    return PAIRED.format(pairs=ids, cells=cells)


Found = tuple[Check, str | None]  # a row of the proof, and the inequality in words


def _match(
    a: Cells, a_rows: list[Row], b: Cells, b_rows: list[Row]
) -> tuple[list[Pair], list[tuple[str, Row]]]:
    """Pairs by repeat and shared level, and the cells that found no partner."""
    shared = [key for key in LEVEL if not (key in a.keys and key in b.keys)]

    def by_place(cells: Cells, rows: list[Row]) -> dict[tuple[Any, ...], Row]:
        found: dict[tuple[Any, ...], Row] = {}
        for row in rows:
            key = (row.repeat, *(row.level[each] for each in shared))
            if key in found:
                one, other = found[key], row
                raise HarnessError(
                    f"{cells} fits two cells of repeat {row.repeat} at {place(row.level)} "
                    f"({one.variant} and {other.variant}): say which, such as variant="
                    f"{one.variant}"
                )
            found[key] = row
        return found

    left, right = by_place(a, a_rows), by_place(b, b_rows)
    pairs = [
        Pair(row.repeat, {k: row.level[k] for k in LEVEL if row.level[k] == right[key].level[k]},
             row, right[key])
        for key, row in left.items() if key in right
    ]  # fmt: skip
    lone = [(b.name, row) for key, row in left.items() if key not in right]
    lone += [(a.name, row) for key, row in right.items() if key not in left]
    return pairs, lone


def _sides(pairs: Sequence[Pair]) -> tuple[list[Row], list[Row]]:
    return [pair.a for pair in pairs], [pair.b for pair in pairs]


def _cells(pairs: list[Pair], lone: list[tuple[str, Row]], a: Cells, b: Cells) -> Found:
    missing = [name for name, _ in lone]
    n_a, n_b = (str(len(pairs) + missing.count(other.name)) for other in (b, a))
    check = Check("cells, by repeat and level", n_a, n_b, not lone)
    if not lone:
        return check, None
    name, row = lone[0]
    return check, f"{name} has no cell in repeat {row.repeat} at {place(row.level)}"


def _apart(pair: Pair) -> bool:
    """The recording was broken off between the two and continued: another session, another day."""
    return bool(pair.a.work["session"] != pair.b.work["session"])


def _verdicts(
    pairs: list[Pair], kept: tuple[Pair, ...], bad: list[Pair], a: Cells, b: Cells
) -> Found:
    """Unequal only where no repeat is left; how many are enough, the interval decides."""
    n_a, n_b = (sum(row.verdict == "VALID" for row in rows) for rows in _sides(pairs))
    n = len(pairs)
    check = Check("VALID cells", f"{n_a} of {n}", f"{n_b} of {n}", bool(kept) or not pairs)
    if check.equal:
        return check, None
    pair = bad[0]
    if _apart(pair):
        return check, f"session differs in {pair.place}: the recording was broken off in it"
    side, row = (a, pair.a) if pair.a.verdict != "VALID" else (b, pair.b)
    return check, f"{side.name} is INVALID in {pair.place} ({'; '.join(row.reasons)})"


def _same(pairs: tuple[Pair, ...], a: Cells, b: Cells) -> Iterator[Found]:
    """What is stored with the cells: session, endpoint, template, model."""
    for name in pairs[0].a.work:
        of_a, of_b = (
            ", ".join(dict.fromkeys(_short(row.work[name]) for row in rows))
            for rows in _sides(pairs)
        )
        odd = next((p for p in pairs if p.a.work[name] != p.b.work[name]), None)
        fault = None
        if odd is not None:
            fault = (
                f"{name} differs in {odd.place}: {odd.a.work[name]} of {a.name}, "
                f"{odd.b.work[name]} of {b.name}"
            )
        yield Check(name, of_a, of_b, odd is None), fault


def _short(value: object) -> str:
    """A hash by its first digits; what is not known as a dash."""
    text = "–" if value is None else str(value)
    return text[:12] if len(text) == 64 else text


def _counted(
    con: duckdb.DuckDBPyConnection, pairs: tuple[Pair, ...], a: Cells, b: Cells
) -> Iterator[Found]:
    """What the requests themselves say, prompt by prompt."""
    rows = con.execute(paired_sql(pairs) + COUNTS).fetchall()
    counts = list(zip(pairs, rows, strict=True))
    n_a, n_b = sum(row[0] for row in rows), sum(row[1] for row in rows)
    digest_a, digest_b = (sum(row[i] or 0 for row in rows) % 2**32 for i in (9, 10))
    odd = next(((p, r) for p, r in counts if not r[0] == r[1] == r[2]), None)
    fault = odd and (
        f"prompts differ in {odd[0].place}: {odd[1][0]} of {a.name} and {odd[1][1]} of {b.name},"
        f" {odd[1][2]} of them the same"
    )
    yield (
        Check("prompts, by hash", f"{n_a} ({digest_a:08x})", f"{n_b} ({digest_b:08x})", not odd),
        fault,
    )
    for name, differ, of_a, of_b in (("prompt tokens", 3, 5, 6), ("output tokens", 4, 7, 8)):
        odd = next(((p, r) for p, r in counts if r[differ]), None)
        fault = odd and (
            f"{name} by the server's count differ in {odd[0].place} for {odd[1][differ]} of the "
            f"prompts: {odd[1][of_a]} in all of {a.name}, {odd[1][of_b]} of {b.name}"
        )
        total_a, total_b = (str(sum(row[i] or 0 for row in rows)) for i in (of_a, of_b))
        yield Check(f"{name}, by the server", total_a, total_b, not odd), fault
