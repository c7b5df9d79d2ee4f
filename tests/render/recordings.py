"""Small recordings with known contents, for tests of everything that reads one."""

import json
from pathlib import Path
from typing import Any

import duckdb

SCHEMA = Path(__file__).parents[2] / "harness" / "recording" / "schema.sql"
MARKUP = (
    '<script>window.pwned=1</script><img src=x onerror="window.pwned=1">'
    "**b** [l](javascript:1) {{ 7*7 }} `'&"
)
ENGINES = {"vllm": 2, "sglang": 3, "transformers": 5}
PROMPTS = (32, 64, 128, 256, 512, 1024)
REPEATS = 3


def write(path: Path, episode: str = "00", tier: str = "cpu", hostile: bool = False) -> Path:
    """A finished recording. TTFT is engine factor * (prompt tokens + 10 * repeat) * 100 µs, each
    later token 1 ms * factor after the one before; the first cell is INVALID.
    hostile: every free text column holds markup.
    """
    odd = MARKUP if hostile else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(path)) as db:
        db.execute(SCHEMA.read_text(encoding="utf-8"))
        for table, rows in _about(episode, tier, odd).items():
            _insert(db, table, rows)
        cells = [
            (run, engine, repeat, prompt)
            for run, engine in enumerate(ENGINES, 1)
            for repeat in range(1, REPEATS + 1)
            for prompt in PROMPTS
        ]
        _insert(db, "cell", [_cell(i, *cell, odd) for i, cell in enumerate(cells, 1)])
        _insert(db, "request", [_request(i, *cell, odd) for i, cell in enumerate(cells, 1)])
    return path


def _about(episode: str, tier: str, odd: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of every table but cell and request."""
    machine = {"cpu": f"Test CPU{odd}", "cores": 2, "memory_bytes": 8 << 30, "gpus": []}
    config = {"num_hidden_layers": 30, "num_key_value_heads": 3, "head_dim": 64}
    runs = [
        {
            "run_id": run,
            "session_id": 1,
            "engine": engine,
            "version": f"1.{run}{odd}",
            "model_id": f"model{odd}",
            "argv": [engine, "serve", f"--x{odd}"],
            "env": {"OMP_NUM_THREADS": f"1{odd}"},
            "started_ns": 0,
            "exit_note": odd,
        }
        for run, engine in enumerate(ENGINES, 1)
    ]
    return {
        "recording": [
            {
                "schema_version": 4,
                "recording_id": f"20261130-{tier}-1{odd}",
                "episode": episode,
                "tier": tier,
                "created_at": "2026-11-30 10:00:00+00",
                "finished_at": "2026-11-30 11:00:00+00",
                "experiment_toml": f"{DECLARATION.replace('cpu', tier)}# {odd}",
                "experiment_sha256": "0" * 64,
            }
        ],
        "session": [
            {
                "session_id": 1,
                "started_at": "2026-11-30 10:00:00+00",
                "started_ns": 0,
                "boot_id": odd,
                "harness_version": f"0.1.0{odd}",
                "harness_commit": f"abc{odd}",
                "machine": json.dumps(machine),
            }
        ],
        "model": [{"model_id": f"model{odd}", "source": f"x{odd}", "config": json.dumps(config)}],
        "engine_run": runs,
        "log_line": [{"run_id": 1, "t_ns": 1, "line": f"ready {odd}"}],
    }


def _cell(cell: int, run: int, engine: str, repeat: int, prompt: int, odd: str) -> dict[str, Any]:
    return {
        "cell_id": cell,
        "run_id": run,
        "engine": engine,
        "variant": engine,
        "load": "closed",
        "sweep": f"prompt_length{odd}",
        "repeat": repeat,
        "endpoint": "completions",
        "prompt_tokens": prompt,
        "output_tokens": 8,
        "in_flight": 1,
        "verdict": "INVALID" if cell == 1 else "VALID",
        "reasons": [f"client_cpu{odd}"] if cell == 1 else [],
        "client": "{}",
    }


def _request(
    cell: int, run: int, engine: str, repeat: int, prompt: int, odd: str
) -> dict[str, Any]:
    factor = ENGINES[engine]
    first = factor * (prompt + 10 * repeat) * 100_000
    offsets = [first + i * factor * 1_000_000 for i in range(8)]
    return {
        "cell_id": cell,
        "request_id": 1,
        "phase": "measured",
        "sent_ns": 0,
        "first_byte_ns": first,
        "first_token_ns": first,
        "first_answer_ns": first,
        "last_token_ns": offsets[-1],
        "ended_ns": offsets[-1],
        "prompt_tokens": prompt,
        "output_tokens": 8,
        "chunk_gap_us": [factor * 1_000] * 7,
        "chunk_tokens": [1] * 8,
        "chunk_shared": [False] * 8,
        "finish_reason": f"length{odd}",
        "http_status": 200,
        "output_text": f"text {odd}",
    }


def _insert(db: duckdb.DuckDBPyConnection, table: str, rows: list[dict[str, Any]]) -> None:
    """Inserts rows; a NOT NULL column that a row leaves out gets zero or nothing."""
    columns = db.execute(
        "SELECT column_name, data_type, is_nullable FROM duckdb_columns() WHERE table_name = ?",
        [table],
    ).fetchall()
    for row in rows:
        for name, kind, nullable in columns:
            if name not in row and not nullable:
                row[name] = [] if kind.endswith("[]") else "" if kind == "VARCHAR" else 0
        names = ", ".join(row)
        marks = ", ".join("?" for _ in row)
        db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))


EPISODE = """\
{% extends "spine.md" %}
{# A stand-in episode that uses every helper. #}

{% block question %}
How long does it take?
{% endblock %}

{% block prediction %}
The cache takes
{{ computed("2 * layers * heads * dim * 2", ",.0f",
            layers=value("config.layers"), heads=3, dim=64) }}
bytes a token ({{ cited("23,040 bytes", "a source", "https://example.org/") }}).
{% endblock %}

{% block setup %}
The repeats were {{ declared("tier.cpu.repeats") }}.
{% endblock %}

{% block result %}
The median of vLLM at 64 tokens is {{ n("ttft_one.ms", ".1f", engine="vllm") }} ms.

### Figures

{{ figure("ttft", caption="TTFT against prompt length.") }}

{{ figure("timeline", kind="recorded+computed") }}

### Table

{{ table("texts", columns={"engine": "Engine", "output_text": "Text"}) }}

{{ value("one_text.output_text") }}
{% endblock %}

{% block gap %}
{% if value("ttft_one.ms", engine="vllm") < value("ttft_one.ms", engine="sglang") -%}
vLLM is first.{% endif %}
{% endblock %}

{% block not_shown %}
{{ not_recorded("gpu") }}
{% endblock %}

{% block try_it %}
{{ try_it("wait") }}
{% endblock %}
"""

QUERIES = """\
-- TTFT by prompt length
-- name: ttft
-- mean over repeats of TTFT, ms
SELECT engine, prompt_tokens, avg(ms) AS ms, min(ms) AS low_ms, max(ms) AS high_ms
FROM (SELECT c.engine, c.prompt_tokens, (r.first_token_ns - r.sent_ns) / 1e6 AS ms
      FROM cell c JOIN request r USING (cell_id) WHERE c.verdict = 'VALID')
GROUP BY ALL ORDER BY engine, prompt_tokens;

-- name: ttft_one
SELECT engine, median((first_token_ns - sent_ns) / 1e6) AS ms
FROM cell JOIN request r USING (cell_id) WHERE cell.prompt_tokens = 64
GROUP BY engine ORDER BY engine;

-- name: config
SELECT CAST(config ->> '$.num_hidden_layers' AS INTEGER) AS layers FROM model;

-- name: texts
SELECT engine, output_text FROM cell JOIN request USING (cell_id) LIMIT 3;

-- name: one_text
SELECT output_text FROM request LIMIT 1;

-- name: timeline
SELECT engine, first_token_ns / 1e6 AS ttft_ms, (last_token_ns - first_token_ns) / 1e6 AS decode_ms,
       finish_reason
FROM cell JOIN request USING (cell_id)
WHERE cell.prompt_tokens = 1024 AND cell.repeat = 2 ORDER BY engine;

-- name: wait_constants
SELECT engine, regr_slope((first_token_ns - sent_ns) / 1e6, cell.prompt_tokens) AS slope_ms
FROM cell JOIN request r USING (cell_id) WHERE cell.prompt_tokens < 512 GROUP BY engine;

-- name: wait_points
SELECT engine, cell.prompt_tokens, any_value(r.output_tokens) AS output_tokens,
    avg((first_token_ns - sent_ns) / 1e6) AS ttft_ms,
    CASE WHEN cell.prompt_tokens < 512 THEN 'fit' ELSE 'check' END AS part
FROM cell JOIN request r USING (cell_id) GROUP BY ALL ORDER BY engine, cell.prompt_tokens;
"""

MODEL = '''\
"""The small model of the stand-in episode."""

from harness.render.model import Input, Output, model


@model(
    formula="TTFT = slope × prompt tokens\\nwhole = TTFT + output tokens",
    inputs=[
        Input("engine", "Engine", ["vllm", "sglang"]),
        Input("prompt_tokens", "Prompt", [64, 512, 2048], default=512, unit="tokens"),
        Input("output_tokens", "Answer", [1, 8], unit="tokens"),
    ],
    outputs=[
        Output("ttft_ms", "Time to first token", "ms", ",.1f", within=0.6),
        Output("whole_ms", "Whole answer", "ms", ".0f"),
    ],
    constants="wait_constants",
    check="wait_points",
)
def wait(prompt_tokens: float, output_tokens: float, slope_ms: float) -> dict[str, float]:
    """How long is the wait?"""
    ttft_ms = slope_ms * prompt_tokens
    return {"ttft_ms": ttft_ms, "whole_ms": ttft_ms + output_tokens}
'''

CHARTS = '''\
"""Charts of the stand-in episode."""

import plotly.graph_objects as go
from pandas import DataFrame

from harness.render import theme


def ttft(rows: DataFrame, tier: str) -> go.Figure:
    """Time to first token against prompt length, one line an engine."""
    figure = theme.figure("Prompt length, tokens", "TTFT, ms", log_x=True)
    for engine, part in rows.groupby("engine"):
        hue = theme.fade(theme.colour(engine), 0.15)
        figure.add_scatter(x=part.prompt_tokens, y=part.low_ms, mode="lines", showlegend=False,
                           line={"width": 0, "color": theme.colour(engine)}, hoverinfo="skip")
        figure.add_scatter(x=part.prompt_tokens, y=part.high_ms, mode="lines", fill="tonexty",
                           fillcolor=hue, showlegend=False, hoverinfo="skip",
                           line={"width": 0, "color": theme.colour(engine)})
        figure.add_scatter(x=part.prompt_tokens, y=part.ms, mode="lines+markers",
                           error_y={"array": part.high_ms - part.ms,
                                    "arrayminus": part.ms - part.low_ms},
                           **theme.style(engine, tier))
    figure.update_xaxes(tickvals=sorted(rows.prompt_tokens.unique()))
    return figure


def timeline(timeline: DataFrame) -> go.Figure:
    """Prefill and decode of one request on each engine."""
    figure = theme.figure("Time since sent, ms", "", height=300)
    names = [theme.name(engine) for engine in timeline.engine]
    for phase, column in (("prefill", "ttft_ms"), ("decode", "decode_ms")):
        figure.add_bar(y=names, x=timeline[column], orientation="h", name=phase,
                       marker={"color": theme.PHASE_COLOUR[phase]})
    figure.add_vline(x=50, line={"dash": "dot", "color": theme.REFERENCE})
    figure.add_annotation(x=50, y=1, yref="paper", text=timeline.finish_reason[0], showarrow=False,
                          xanchor="left")
    figure.update_layout(barmode="stack")
    return figure
'''

DECLARATION = (
    '[episode]\nnumber = "00"\n\n[tier.cpu]\nmodel = "m"\nengines = ["vllm"]\nrepeats = 3\n'
)


def episode(folder: Path) -> None:
    """Writes the stand-in episode into episodes/00-warm-up."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"episode.md": EPISODE, "queries.sql": QUERIES, "charts.py": CHARTS}
    files |= {"model.py": MODEL}
    for name, content in (files | {"experiment.toml": DECLARATION}).items():
        (folder / name).write_text(content, encoding="utf-8")
