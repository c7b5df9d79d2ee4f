-- The benchmark of load generators: one DuckDB file a run of `make bench`. Not a recording of
-- engines, but it carries what the site asks of every recording (the views at the end).

CREATE TABLE recording (
    schema_version INTEGER NOT NULL,
    recording_id VARCHAR NOT NULL,
    episode VARCHAR NOT NULL,
    tier VARCHAR NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ
);
COMMENT ON TABLE recording IS 'One row: which benchmark this is.';
COMMENT ON COLUMN recording.schema_version IS 'Version of the recordings'' schema whose views this file answers.';
COMMENT ON COLUMN recording.recording_id IS 'Name of the file, without its ending.';
COMMENT ON COLUMN recording.episode IS 'Number of the page that shows it.';
COMMENT ON COLUMN recording.tier IS 'Machine tier: cpu or gpu.';
COMMENT ON COLUMN recording.created_at IS 'Wall-clock time of the start.';
COMMENT ON COLUMN recording.finished_at IS 'Wall-clock time of the end; NULL where it was broken off.';

CREATE TABLE session (
    session_id INTEGER NOT NULL,
    harness_commit VARCHAR,
    machine JSON NOT NULL,
    gap_ms DOUBLE NOT NULL,
    ttft_ms DOUBLE NOT NULL,
    stream_s DOUBLE NOT NULL,
    within_ms DOUBLE NOT NULL,
    hopeless_ms DOUBLE NOT NULL,
    hopeless_frac DOUBLE NOT NULL
);
COMMENT ON TABLE session IS 'One row: where and how it was run.';
COMMENT ON COLUMN session.session_id IS '1.';
COMMENT ON COLUMN session.harness_commit IS 'Commit of the repository, with "-dirty" where the tree had changes.';
COMMENT ON COLUMN session.machine IS 'Processor, cores, memory, kernel and Python of the machine.';
COMMENT ON COLUMN session.gap_ms IS 'Time between two chunks of a stream, as the emulator was set.';
COMMENT ON COLUMN session.ttft_ms IS 'Time to the first chunk, as the emulator was set.';
COMMENT ON COLUMN session.stream_s IS 'Length of each stream, seconds.';
COMMENT ON COLUMN session.within_ms IS 'A tool''s ceiling is the highest rate at which its p99 error of gaps is within this.';
COMMENT ON COLUMN session.hopeless_ms IS 'A rate at which a tool''s p99 error of gaps passed this was not repeated, and no higher one tried.';
COMMENT ON COLUMN session.hopeless_frac IS 'The same of a rate at which a tool took in less than this share of it.';

CREATE TABLE tool (
    tool VARCHAR PRIMARY KEY,
    place INTEGER NOT NULL,
    package VARCHAR NOT NULL,
    version VARCHAR,
    keeps VARCHAR NOT NULL,
    matched_by VARCHAR NOT NULL,
    install_error VARCHAR
);
COMMENT ON TABLE tool IS 'The load generators.';
COMMENT ON COLUMN tool.tool IS 'Name; the first is this project''s recorder.';
COMMENT ON COLUMN tool.place IS 'Order in tables, from 0.';
COMMENT ON COLUMN tool.package IS 'Python package that it was installed from; empty for the recorder.';
COMMENT ON COLUMN tool.version IS 'Version that was run; NULL where it isn''t installed.';
COMMENT ON COLUMN tool.keeps IS 'What it keeps of when the chunks of a request came.';
COMMENT ON COLUMN tool.matched_by IS 'How its requests were found in the emulator''s truth.';
COMMENT ON COLUMN tool.install_error IS 'Why it could not be run; NULL where it could.';

CREATE TABLE bench_run (
    run_id INTEGER PRIMARY KEY,
    tool VARCHAR NOT NULL,
    repeat INTEGER NOT NULL,
    streams INTEGER NOT NULL,
    chunk_rate_per_s DOUBLE NOT NULL,
    argv VARCHAR[] NOT NULL,
    status INTEGER NOT NULL,
    fault VARCHAR,
    wall_s DOUBLE NOT NULL,
    served INTEGER NOT NULL,
    matched INTEGER NOT NULL,
    chunks BIGINT NOT NULL,
    gaps BIGINT NOT NULL,
    gaps_compared BIGINT,
    written_per_s DOUBLE,
    seen_per_s DOUBLE,
    cpu_s DOUBLE,
    parse_cpu_s DOUBLE NOT NULL
);
COMMENT ON TABLE bench_run IS 'One run of one tool: a number of streams at once, each of 1 / gap_ms chunks a millisecond.';
COMMENT ON COLUMN bench_run.run_id IS 'Counter from 1, in the order of the runs.';
COMMENT ON COLUMN bench_run.tool IS 'The tool.';
COMMENT ON COLUMN bench_run.repeat IS 'Counter from 1; the tools take turns within a repeat.';
COMMENT ON COLUMN bench_run.streams IS 'Requests, all in flight at once.';
COMMENT ON COLUMN bench_run.chunk_rate_per_s IS 'Chunks a second asked of the emulator, all streams together.';
COMMENT ON COLUMN bench_run.argv IS 'Command line, paths of this machine left out.';
COMMENT ON COLUMN bench_run.status IS 'Exit status; negative: ended by that signal (-9: after 120 s).';
COMMENT ON COLUMN bench_run.fault IS 'What was wrong with the run; NULL where all its requests could be measured. A run with a fault is in no result.';
COMMENT ON COLUMN bench_run.wall_s IS 'Seconds from start to exit, its imports left out.';
COMMENT ON COLUMN bench_run.served IS 'Requests that reached the emulator.';
COMMENT ON COLUMN bench_run.matched IS 'Requests that the tool counts as successes and that were found in the truth.';
COMMENT ON COLUMN bench_run.chunks IS 'Token chunks that the emulator wrote for the matched requests.';
COMMENT ON COLUMN bench_run.gaps IS 'Gaps between those chunks.';
COMMENT ON COLUMN bench_run.gaps_compared IS 'Of these, the gaps of requests of which the tool saw as many chunks as were written; NULL where it keeps no gaps.';
COMMENT ON COLUMN bench_run.written_per_s IS 'Chunks a second that the emulator wrote.';
COMMENT ON COLUMN bench_run.seen_per_s IS 'Chunks a second that the tool took in, from its first token to its last.';
COMMENT ON COLUMN bench_run.cpu_s IS 'CPU seconds of the tool''s process tree while the streams came in.';
COMMENT ON COLUMN bench_run.parse_cpu_s IS 'CPU seconds spent afterwards to turn raw bytes into chunks; 0 for tools that do it while they measure.';

CREATE TABLE error (
    run_id INTEGER NOT NULL,
    measure VARCHAR NOT NULL,
    samples BIGINT NOT NULL,
    p50_ms DOUBLE NOT NULL,
    p90_ms DOUBLE NOT NULL,
    p99_ms DOUBLE NOT NULL,
    p99_9_ms DOUBLE NOT NULL,
    max_ms DOUBLE NOT NULL
);
COMMENT ON TABLE error IS 'How far off a tool was in a run: quantiles of the absolute error against the emulator''s truth.';
COMMENT ON COLUMN error.run_id IS 'The run.';
COMMENT ON COLUMN error.measure IS 'ttft: time to first token; gap: time between two chunks; mean_gap: a request''s mean time between chunks.';
COMMENT ON COLUMN error.samples IS 'Requests, or gaps, compared.';
COMMENT ON COLUMN error.p50_ms IS 'Median of the absolute error, ms.';
COMMENT ON COLUMN error.p90_ms IS '90th percentile, ms.';
COMMENT ON COLUMN error.p99_ms IS '99th percentile, ms.';
COMMENT ON COLUMN error.p99_9_ms IS '99.9th percentile, ms.';
COMMENT ON COLUMN error.max_ms IS 'Largest, ms.';

CREATE TABLE untried (
    tool VARCHAR NOT NULL,
    chunk_rate_per_s DOUBLE NOT NULL,
    hopeless_at_per_s DOUBLE NOT NULL
);
COMMENT ON TABLE untried IS 'Rates at which a tool was not run, because it was hopeless at a lower one.';
COMMENT ON COLUMN untried.tool IS 'The tool.';
COMMENT ON COLUMN untried.chunk_rate_per_s IS 'The rate that was left out.';
COMMENT ON COLUMN untried.hopeless_at_per_s IS 'The rate at which it was hopeless.';

CREATE TABLE fault_case (
    fault VARCHAR PRIMARY KEY,
    place INTEGER NOT NULL,
    what VARCHAR NOT NULL,
    right_answer VARCHAR NOT NULL
);
COMMENT ON TABLE fault_case IS 'The faults that the emulator was set to.';
COMMENT ON COLUMN fault_case.fault IS 'Name.';
COMMENT ON COLUMN fault_case.place IS 'Order in tables, from 0.';
COMMENT ON COLUMN fault_case.what IS 'What the server does.';
COMMENT ON COLUMN fault_case.right_answer IS 'What a tool must say to have noticed it.';

CREATE TABLE fault_catch (
    tool VARCHAR NOT NULL,
    fault VARCHAR NOT NULL,
    noticed BOOLEAN NOT NULL,
    said VARCHAR NOT NULL
);
COMMENT ON TABLE fault_catch IS 'Which faults each tool noticed.';
COMMENT ON COLUMN fault_catch.tool IS 'The tool.';
COMMENT ON COLUMN fault_catch.fault IS 'The fault.';
COMMENT ON COLUMN fault_catch.noticed IS 'Whether it said what is right.';
COMMENT ON COLUMN fault_catch.said IS 'What it said.';

-- Medians over the repeats, a row a tool and rate: what the tables and verdicts of the page read.
-- A run that lost requests is in none: what it has of the others says nothing about the lost.
CREATE VIEW result AS
WITH off AS (
    SELECT run_id,
        any_value(p50_ms) FILTER (measure = 'ttft') AS ttft_p50,
        any_value(p99_ms) FILTER (measure = 'ttft') AS ttft_p99,
        any_value(p50_ms) FILTER (measure = 'gap') AS gap_p50,
        any_value(p99_ms) FILTER (measure = 'gap') AS gap_p99,
        any_value(p99_ms) FILTER (measure = 'mean_gap') AS mean_gap_p99
    FROM error GROUP BY run_id
)
SELECT tool, streams, chunk_rate_per_s, count(*) AS repeats,
    median(written_per_s) AS written_per_s, median(seen_per_s) AS seen_per_s,
    median(1e6 * cpu_s / chunks) AS live_cpu_s_per_million,
    median(1e6 * (cpu_s + parse_cpu_s) / chunks) AS cpu_s_per_million,
    sum(gaps_compared) / sum(gaps) AS gaps_compared_frac,
    median(ttft_p50) AS ttft_p50_ms, median(ttft_p99) AS ttft_p99_ms,
    median(gap_p50) AS gap_p50_ms, median(gap_p99) AS gap_p99_ms,
    max(gap_p99) AS gap_p99_worst_ms, median(mean_gap_p99) AS mean_gap_p99_ms
FROM bench_run LEFT JOIN off USING (run_id)
WHERE fault IS NULL
GROUP BY tool, streams, chunk_rate_per_s;
COMMENT ON VIEW result IS 'Per tool and chunk rate: medians over its repeats that have no fault.';

CREATE VIEW asked AS
SELECT tool, chunk_rate_per_s FROM bench_run UNION SELECT tool, chunk_rate_per_s FROM untried;
COMMENT ON VIEW asked IS 'The rates that each tool was run at or would have been.';

-- Held: the p99 error of gaps is within session.within_ms, the emulator wrote at least 90 % of the
-- rate, and at least 95 % of what it wrote came in per second.
CREATE VIEW ceiling AS
WITH held AS (
    SELECT tool, max(chunk_rate_per_s) AS held_per_s
    FROM result, session
    WHERE gap_p99_ms <= within_ms AND written_per_s >= 0.9 * chunk_rate_per_s
        AND seen_per_s >= 0.95 * written_per_s
    GROUP BY tool
)
SELECT tool, any_value(held_per_s) AS ceiling_per_s,
    min(chunk_rate_per_s) FILTER (chunk_rate_per_s > coalesce(held_per_s, 0)) AS past_per_s
FROM asked LEFT JOIN held USING (tool)
WHERE tool IN (SELECT tool FROM result WHERE gap_p99_ms IS NOT NULL)
GROUP BY tool;
COMMENT ON VIEW ceiling IS 'Per tool that keeps gaps: the highest rate that it held, and the next one of the benchmark, which it did not; NULL where there is none.';

CREATE VIEW cell AS
SELECT run_id AS cell_id, tool AS engine, tool AS variant, '' AS sweep, 32 AS prompt_tokens,
    chunks // greatest(matched, 1) AS output_tokens, streams AS in_flight,
    NULL::DOUBLE AS rate_per_s, NULL::DOUBLE AS capacity_frac, repeat,
    CASE WHEN fault IS NULL THEN 'VALID' ELSE 'INVALID' END AS verdict,
    CASE WHEN fault IS NULL THEN [] ELSE [fault] END AS reasons, '{}'::JSON AS client
FROM bench_run;
CREATE VIEW request AS
SELECT 0 AS cell_id, 0 AS request_id, '' AS phase, NULL::VARCHAR AS error, 0 AS scheduled_ns,
    0 AS sent_ns, 0 AS first_token_ns WHERE false;
CREATE VIEW model AS SELECT 'emulator' AS model_id, 'no model' AS source;
CREATE VIEW engine_run AS
SELECT min(run_id) AS run_id, tool AS engine, coalesce(any_value(version), '') AS version,
    min_by(argv, run_id) AS argv, '{}' AS env
FROM bench_run JOIN tool USING (tool) GROUP BY tool;
