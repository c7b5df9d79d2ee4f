-- name: tools
-- The load generators, and why one could not be run where it could not.
SELECT tool, coalesce(if(place = 0, version[:7], version), 'not installed') AS version, keeps, matched_by,
    coalesce(install_error, '') AS install_error
FROM tool ORDER BY place

-- name: setting
-- How the benchmark was set.
SELECT gap_ms, ttft_ms, stream_s, within_ms, hopeless_ms, 1000 / gap_ms AS chunks_per_s_each,
    (SELECT max(repeat) FROM bench_run) AS repeats,
    (SELECT min(chunk_rate_per_s) FROM bench_run) AS lowest_rate,
    (SELECT max(chunk_rate_per_s) FROM bench_run) AS highest_rate,
    (SELECT count(*) FROM fault_case) AS faults
FROM session

-- name: errors
-- Every tool at every rate: medians over repeats.
SELECT r.chunk_rate_per_s AS rate, tool, repeats, ttft_p50_ms, ttft_p99_ms, gap_p50_ms, gap_p99_ms,
    mean_gap_p99_ms, seen_per_s, live_cpu_s_per_million, cpu_s_per_million
FROM result r JOIN tool USING (tool) ORDER BY rate, place

-- name: written
-- What the emulator itself could write, whoever read it: the benchmark's own limit.
SELECT chunk_rate_per_s AS rate, median(written_per_s) AS written_per_s,
    min(written_per_s) AS least_per_s
FROM bench_run GROUP BY rate ORDER BY rate

-- name: summary
-- One row a tool. Ceiling: the highest rate tried at which the p99 error of chunk gaps was within
-- 1 ms, and at least 95 % of what was written came in per second.
SELECT tool,
    max(chunk_rate_per_s) FILTER (
        gap_p99_ms <= (SELECT within_ms FROM session) AND seen_per_s >= 0.95 * written_per_s
    ) AS ceiling_per_s,
    any_value(cpu_s_per_million) FILTER (chunk_rate_per_s = 10000) AS cpu_s_per_million,
    (SELECT count(*) FROM fault_catch f WHERE f.tool = t.tool AND noticed) AS faults_noticed
FROM tool t LEFT JOIN result r USING (tool) GROUP BY tool, place ORDER BY place

-- name: faults
-- Who notices what: rows are faults, columns are tools.
SELECT what AS fault, right_answer,
    any_value(said) FILTER (t.place = 0) AS said,
    any_value(if(noticed, 'yes', 'no')) FILTER (t.place = 0) AS t0,
    any_value(if(noticed, 'yes', 'no')) FILTER (t.place = 1) AS t1,
    any_value(if(noticed, 'yes', 'no')) FILTER (t.place = 2) AS t2,
    any_value(if(noticed, 'yes', 'no')) FILTER (t.place = 3) AS t3,
    any_value(if(noticed, 'yes', 'no')) FILTER (t.place = 4) AS t4,
    any_value(if(noticed, 'yes', 'no')) FILTER (t.place = 5) AS t5
FROM fault_case c JOIN fault_catch f USING (fault) JOIN tool t USING (tool)
GROUP BY what, right_answer, c.place ORDER BY c.place

-- name: missed
-- What the tools said of the faults that they did not notice.
SELECT tool, what AS fault, said
FROM fault_catch JOIN fault_case c USING (fault) JOIN tool t USING (tool)
WHERE NOT noticed ORDER BY t.place, c.place

-- name: winners
-- Of each column of the tables above: who is first, and how the recorder stands to the best peer.
-- times_better: the best peer's error or cost over the recorder's (of rates: the other way round).
WITH long AS (
    SELECT tool, chunk_rate_per_s AS rate, unnest([
        {'measure': 'TTFT error p50, ms', 'value': ttft_p50_ms},
        {'measure': 'TTFT error p99, ms', 'value': ttft_p99_ms},
        {'measure': 'gap error p50, ms', 'value': gap_p50_ms},
        {'measure': 'gap error p99, ms', 'value': gap_p99_ms},
        {'measure': 'CPU s per million chunks, live', 'value': live_cpu_s_per_million},
        {'measure': 'CPU s per million chunks, in all', 'value': cpu_s_per_million},
        {'measure': 'chunks/s taken in', 'value': -seen_per_s}
    ], recursive := true) FROM result
)
SELECT measure, rate, arg_min(tool, value) AS first_tool,
    abs(any_value(value) FILTER (place = 0)) AS ours,
    abs(min(value) FILTER (place > 0)) AS best_peer,
    arg_min(tool, value) FILTER (place > 0) AS best_peer_tool,
    if(measure LIKE 'chunks%', ours / best_peer, best_peer / ours) AS times_better
FROM long JOIN tool USING (tool) WHERE value IS NOT NULL
GROUP BY measure, rate ORDER BY measure, rate

-- name: goals
-- The project's own goals, and whether this run met them.
WITH ours AS (SELECT r.* FROM result r JOIN tool USING (tool) WHERE place = 0),
peers AS (SELECT r.* FROM result r JOIN tool USING (tool) WHERE place > 0),
closer AS (
    SELECT o.chunk_rate_per_s, min(p.gap_p99_ms) / o.gap_p99_ms AS times
    FROM ours o JOIN peers p USING (chunk_rate_per_s) GROUP BY o.chunk_rate_per_s, o.gap_p99_ms
),
ceilings AS (
    SELECT (SELECT max(chunk_rate_per_s) FROM ours
            WHERE gap_p99_ms <= (SELECT within_ms FROM session) AND seen_per_s >= 0.95 * written_per_s) AS ours,
        (SELECT max(chunk_rate_per_s) FROM peers
            WHERE gap_p99_ms <= (SELECT within_ms FROM session) AND seen_per_s >= 0.95 * written_per_s) AS best_peer
)
SELECT 'p99 error of a gap at 50,000 chunks/s, ms' AS goal, 'under 0.05' AS wanted,
    max(gap_p99_ms) FILTER (chunk_rate_per_s = 50000) AS found, found < 0.05 AS met FROM ours
UNION ALL
SELECT 'times closer to the truth than the best peer, worst rate', 'at least 10', min(times),
    min(times) >= 10 FROM closer
UNION ALL
SELECT 'ceiling over the best peer''s', 'at least 3', ours / best_peer, ours / best_peer >= 3
FROM ceilings
