"""Where a figure comes from: the recording's own account of itself, and how a page shows it."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from harness.errors import HarnessError
from harness.render.escape import text
from harness.render.manifest import Entry

# The view `measured_request` has VALID cells alone, so this reads the tables.
REJECTED = """
SELECT concat_ws(', ', c.variant, c.sweep, 'prompt ' || c.prompt_tokens,
        'output ' || c.output_tokens, 'in flight ' || c.in_flight,
        format('{:.3g} requests/s', c.rate_per_s),
        format('{:.0f} % of capacity', 100 * c.capacity_frac), 'repeat ' || c.repeat),
    c.reasons, count(r.request_id), count(r.error),
    quantile_cont((r.first_token_ns - r.scheduled_ns) / 1e6, 0.5) FILTER (r.error IS NULL),
    quantile_disc((r.sent_ns - r.scheduled_ns) / 1e6, 0.99),
    100 * CAST(c.client ->> 'cpu_frac' AS DOUBLE)
FROM cell c LEFT JOIN request r ON r.cell_id = c.cell_id AND r.phase = 'measured'
WHERE c.verdict <> 'VALID'
GROUP BY ALL ORDER BY min(c.cell_id)
"""


@dataclass(frozen=True, slots=True)
class EngineRun:
    """One distinct way in which an engine was started: its version and command line."""

    engine: str
    version: str
    command: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """An INVALID cell. The last three are NULL where nothing was answered, sent or measured."""

    cell: str
    reasons: tuple[str, ...]
    requests: int
    failed: int
    ttft_ms: float | None
    lag_ms: float | None
    client_percent: float | None


@dataclass(frozen=True, slots=True)
class Source:
    """A recording, as its pages describe it."""

    entry: Entry
    machine: dict[str, Any]
    commit: str
    models: tuple[str, ...]
    runs: tuple[EngineRun, ...]
    rejected: tuple[Rejected, ...]

    @property
    def label(self) -> str:
        """What its figures were recorded on: the machine tier; the emulator where that is all that
        it holds, and for every demonstration (episodes/index.toml numbers them from 90)."""
        emulated = {run.engine for run in self.runs} == {"emulator"}
        return "emulator" if emulated or self.entry.episode >= "90" else self.entry.tier


def read(root: Path, entry: Entry) -> Source:
    """Reads the account out of the file that the manifest names."""
    path = root / entry.file
    try:
        with duckdb.connect(str(path), read_only=True) as db:
            machine, commit = _one(
                db, "SELECT machine, harness_commit FROM session ORDER BY session_id DESC"
            )
            models = db.execute("SELECT model_id, source FROM model ORDER BY model_id").fetchall()
            runs = db.execute(
                "SELECT engine, version, argv, min_by(env, run_id) FROM engine_run"
                " GROUP BY engine, version, argv ORDER BY min(run_id)"
            ).fetchall()
            bad = db.execute(REJECTED).fetchall()
    except duckdb.Error as error:
        raise HarnessError(f"{entry.file}: cannot be read: {error}") from error
    return Source(
        entry=entry,
        machine=json.loads(machine),
        commit=commit or "not recorded",
        models=tuple(f"{name} ({origin})" for name, origin in models),
        runs=tuple(
            EngineRun(engine, version or "unknown version", _command(argv, json.loads(env)))
            for engine, version, argv, env in runs
        ),
        rejected=tuple(Rejected(cell, tuple(why), *rest) for cell, why, *rest in bad),
    )


def recording_html(source: Source) -> str:
    """The recording as a description list: file, hash, verdicts, machine, engines, command."""
    entry = source.entry
    verdicts = f"{entry.valid_cells} cells VALID, {entry.invalid_cells} INVALID"
    rows = [
        ("Recording", f"<code>{text(entry.file)}</code>"),
        ("SHA-256", f"<code>{text(entry.sha256)}</code>"),
        ("Recorded", f"{text(entry.recorded)} UTC, commit <code>{text(source.commit)}</code>"),
        ("Verdict", text(verdicts) + _rejected_html(source.rejected)),
        ("Machine", _machine_html(source.machine)),
        ("Model", "<br>".join(text(model) for model in source.models)),
        ("Engines", _runs_html(source.runs)),
        ("Record it again", f"<code>{record_command(entry.episode)}</code>"),
    ]
    return (
        '<dl class="tbt-source">' + "".join(f"<dt>{k}</dt><dd>{v}</dd>" for k, v in rows) + "</dl>"
    )


def record_command(episode: str) -> str:
    if episode == "91":  # the peers: harness/peers
        return "make bench"
    return f"make record EPISODE={text(episode)}"


def sql_html(name: str, sql: str) -> str:
    """A query as a code block, coloured at build."""
    from pygments import highlight  # type: ignore[import-untyped]
    from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
    from pygments.lexers import SqlLexer  # type: ignore[import-untyped]

    code = highlight(f"-- {name}\n{sql}", SqlLexer(), HtmlFormatter(nowrap=True)).strip()
    return f'<div class="highlight"><pre><code>{code}</code></pre></div>'


def _one(db: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    row = db.execute(sql).fetchone()
    if row is None:
        raise duckdb.Error("the table session is empty")
    return row


def _command(argv: list[str], env: dict[str, str]) -> str:
    settings = [f"{key}={shlex.quote(value)}" for key, value in sorted(env.items())]
    return " ".join(settings + [shlex.quote(word) for word in argv])


def _machine_html(machine: dict[str, Any]) -> str:
    facts = []
    for key, value in machine.items():
        said = ", ".join(map(str, value)) if isinstance(value, list) else value
        if said not in (None, ""):
            facts.append(text(f"{key.replace('_', ' ')}: {said}"))
    return "<br>".join(facts)


def _runs_html(runs: tuple[EngineRun, ...]) -> str:
    return "".join(
        f"<div>{text(run.engine)} {text(run.version)}"
        f'<pre class="tbt-argv"><code>{text(run.command)}</code></pre></div>'
        for run in runs
    )


def _rejected_html(rejected: tuple[Rejected, ...]) -> str:
    items = "".join(f"<li>{text(r.cell)}: {text('; '.join(r.reasons))}</li>" for r in rejected)
    return f"<ul>{items}</ul>" if items else ""
