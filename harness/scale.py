"""How do recordings scale? One of a million requests is made up, measured and thrown away.

    python -m harness.scale [--requests N]

Why: the queries of Episode 01 must stay quick, and a request with 128 chunks small, when a GPU tier
records a hundred times what a CPU does. The rows are drawn at random inside DuckDB (gaps around
20 ms with a spread of 2 ms, so that they compress no better than real ones; answers of 128 words),
with gauges and host samples, in the levels that Episode 01 declares. Nothing of it is ever shown as
a recording. The last line is one JSON object: bytes per request, and seconds of each query.
"""

import argparse
import json
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from harness.experiment import find, load
from harness.recording.store import Recording, connect
from harness.render import queries
from harness.schedule import cells
from harness.workload import words

CHUNKS = 128
ROOT = Path(__file__).parent.parent
REQUESTS = """
INSERT INTO request BY NAME
SELECT cell_id, request_id, 'measured' AS phase, 0 AS process, request_id % 16 AS slot,
    hash(request_id, repeat) AS prompt_hash, 64 AS asked_prompt_tokens,
    {chunks} AS asked_output_tokens, due_ns AS scheduled_ns, due_ns + 50_000 AS sent_ns,
    due_ns + first_ns - 9_000 AS first_byte_ns, due_ns + first_ns AS first_token_ns,
    due_ns + first_ns AS first_answer_ns,
    due_ns + first_ns + 1000 * list_sum(chunk_gap_us)::BIGINT AS last_token_ns,
    due_ns + first_ns + 1000 * list_sum(chunk_gap_us)::BIGINT + 80_000 AS ended_ns,
    64 AS prompt_tokens, 0 AS cached_tokens, {chunks} AS output_tokens,
    {chunks} AS client_output_tokens, chunk_gap_us, list_resize([1], {chunks}, 1) AS chunk_tokens,
    list_concat(list_resize([false], {chunks} - 1, false), [true]) AS chunk_shared,
    'length' AS finish_reason, 200 AS http_status, output_text
FROM (
    SELECT c.cell_id, c.repeat, i AS request_id,
        c.measured_ns + (i * 8_000_000)::BIGINT + (random() * 7_000_000)::BIGINT AS due_ns,
        (150_000_000 + random() * 90_000_000)::BIGINT AS first_ns,
        list_transform(range({chunks} - 1), lambda x:
            (20_000 + 2_000 * (random() + random() + random() - 1.5) + x)::UINTEGER)
            AS chunk_gap_us,
        array_to_string(list_transform(range({chunks}), lambda x:
            $words[1 + (hash(x, i, c.repeat) % len($words))::INT]), ' ') AS output_text
    FROM cell c, range(1, {each} + 1) r(i))
"""

TELEMETRY = """
INSERT INTO engine_run BY NAME
SELECT 1 + row_number() OVER () AS run_id, 1 AS session_id, engine, variant, '' AS model_id,
    ['made up'] AS argv, '{{}}' AS env, 0 AS started_ns, 100_000 AS kv_pool_tokens
FROM (SELECT DISTINCT engine, variant, repeat FROM cell ORDER BY ALL);
UPDATE cell SET run_id = r.run_id FROM (
    SELECT run_id, variant, row_number() OVER (PARTITION BY variant ORDER BY run_id) AS repeat
    FROM engine_run) r
WHERE r.variant = cell.variant AND r.repeat = cell.repeat;
INSERT INTO engine_metric BY NAME
SELECT run_id, cell_id, measured_ns + i * 500_000_000 AS t_ns,
    engine || CASE WHEN engine = 'vllm' THEN ':num_requests_running' ELSE ':num_running_reqs' END
        AS name, '' AS labels, (i + cell_id) % 16 AS value
FROM cell, range({samples}) r(i);
INSERT INTO host_sample BY NAME
SELECT cell_id, measured_ns + i * 500_000_000 AS t_ns, [0.9, 0.1] AS core_busy_frac,
    [0.0, 0.0] AS core_steal_frac, 10**9 AS memory_used_bytes, i * 0.49 AS engine_cpu_s
FROM cell, range({samples}) r(i);
INSERT INTO log_line BY NAME
SELECT run_id, i AS t_ns, 'Avg generation throughput: ' || (100 + i % 50) || '.5 tokens/s' AS line
FROM engine_run, range(1000) r(i);
"""
SAMPLES = 600  # a cell: five minutes at two looks a second


def main() -> None:
    parser = argparse.ArgumentParser(description="Size and speed of a recording made up.")
    parser.add_argument("--requests", type=int, default=1_000_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="token-by-token-scale-") as folder:
        path = _make(Path(folder), asked.requests)
        with connect(path) as con:
            ((made,),) = con.execute("SELECT count(*) FROM request").fetchall()
            seconds = dict(_timed(con))
        size = path.stat().st_size
    print(f"{made:,} requests of {CHUNKS} chunks: {size / made:.0f} bytes a request")
    for name, took_s in seconds.items():
        print(f"{took_s:8.2f} s  {name}")
    print(
        json.dumps(
            {
                "requests": made,
                "bytes_per_request": round(size / made, 1),
                "queries_s": round(sum(seconds.values()), 2),
                "slowest": max(seconds, key=lambda name: seconds[name]),
            }
        )
    )


def _make(folder: Path, requests: int) -> Path:
    experiment = load(find(ROOT, "01") / "experiment.toml")
    tier = experiment.tiers["cpu"]
    recording = Recording.create(
        folder / "scale.partial.duckdb",
        recording_id="made-up",
        episode="01",
        tier="cpu",
        created_at=datetime.now(UTC),
        finished_at=None,
        experiment_toml=experiment.text,
        experiment_sha256=experiment.sha256,
        engines=list(tier.engines),
    )
    planned = cells(experiment, tier, tier.engines)
    with recording.transaction():
        recording.insert(
            "cell", [_cell(cell, tier.variant(cell.variant).engine) for cell in planned]
        )
        each = -(-requests // len(planned))
        recording.con.execute(REQUESTS.format(chunks=CHUNKS, each=each), {"words": list(words())})
        recording.con.execute(TELEMETRY.format(samples=SAMPLES))
    return recording.finish(lambda path: None)


def _cell(cell: Any, engine: str) -> dict[str, Any]:
    level, sweep = cell.level, cell.level.sweep
    begun_ns = cell.position * 10**12
    same = {"session_id": 1, "run_id": 1, "engine": engine, "variant": cell.variant}
    seeds = {"seed_prompts": 1, "seed_arrivals": 1, "seed_sampling": 1}
    return same | seeds | {
        "cell_id": cell.position,
        "sweep": sweep.name,
        "repeat": cell.repeat,
        "position": cell.position,
        "endpoint": sweep.endpoint,
        "prompt_tokens": level.prompt_tokens,
        "output_tokens": CHUNKS,
        "added_tokens": 0,
        "load": sweep.load,
        "in_flight": level.in_flight,
        "rate_per_s": level.capacity_frac,
        "capacity_frac": level.capacity_frac,
        "connections": 64,
        "processes": sweep.processes,
        "cold": True,
        "min_requests": 1,
        "min_duration_s": 0.0,
        "warmup_requests": 0,
        "started_ns": begun_ns,
        "measured_ns": begun_ns,
        "ended_ns": begun_ns + 10**11,
        "verdict": "VALID",
        "reasons": [],
        "client": {"chunks": 1, "shared_chunks": 0},
    }  # fmt: skip


def _timed(con: duckdb.DuckDBPyConnection) -> list[tuple[str, float]]:
    times = []
    path = find(ROOT, "01") / "queries.sql"
    for query in queries.parse(path.read_text(encoding="utf-8"), str(path)).values():
        begun_s = time.monotonic()
        con.execute(query.sql).fetchall()
        times.append((query.name, time.monotonic() - begun_s))
    return times


if __name__ == "__main__":
    main()
