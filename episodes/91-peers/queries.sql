-- name: tools
-- The load generators, and why one could not be run where it could not.
SELECT tool, coalesce(if(place = 0, version[:7], version), 'not installed') AS version, keeps, matched_by,
    coalesce(install_error, '') AS install_error
FROM tool ORDER BY place

-- name: setting
-- How the benchmark was set.
SELECT gap_ms, ttft_ms, stream_s, within_ms, hopeless_ms, hopeless_frac, 1000 / gap_ms AS chunks_per_s_each,
    (SELECT max(repeat) FROM bench_run) AS repeats,
    (SELECT min(chunk_rate_per_s) FROM bench_run) AS lowest_rate,
    (SELECT max(chunk_rate_per_s) FROM bench_run) AS highest_rate,
    (SELECT count(*) FROM fault_case) AS faults
FROM session

-- name: errors
-- Every tool at every rate: medians over repeats. gaps_compared_frac: of all gaps that were written
-- for it, those of requests of which the tool saw as many chunks as were written.
SELECT r.chunk_rate_per_s AS rate, tool, repeats, ttft_p50_ms, ttft_p99_ms, gap_p50_ms, gap_p99_ms,
    gaps_compared_frac, mean_gap_p99_ms, seen_per_s, live_cpu_s_per_million, cpu_s_per_million
FROM result r JOIN tool USING (tool) ORDER BY rate, place

-- name: left_out
-- What the table of errors has not: runs that lost requests, and rates that were not tried.
SELECT tool, rate, why FROM (
    SELECT tool, chunk_rate_per_s AS rate, format('repeat {}: {}', repeat, fault) AS why
    FROM bench_run WHERE fault IS NOT NULL
    UNION ALL
    SELECT tool, chunk_rate_per_s, format('not tried: hopeless at {:,}', hopeless_at_per_s::BIGINT)
    FROM untried
) JOIN tool USING (tool) ORDER BY place, rate, why

-- name: written
-- What the emulator itself could write, whoever read it: the benchmark's own limit.
SELECT chunk_rate_per_s AS rate, median(written_per_s) AS written_per_s,
    min(written_per_s) AS least_per_s
FROM bench_run GROUP BY rate ORDER BY rate

-- name: summary
-- One row a tool. Its ceiling, and the next rate, which it did not hold: see the view `ceiling`.
-- CPU time: at the highest rate at which every tool has a result.
WITH shared AS (
    SELECT max(rate) AS rate FROM (
        SELECT chunk_rate_per_s AS rate FROM result GROUP BY rate
        HAVING count(*) = (SELECT count(DISTINCT tool) FROM result)
    )
)
SELECT tool, ceiling_per_s, past_per_s, shared.rate AS cpu_rate, cpu_s_per_million,
    (SELECT count(*) FROM fault_catch f WHERE f.tool = t.tool AND noticed) AS faults_noticed
FROM tool t CROSS JOIN shared LEFT JOIN ceiling USING (tool)
    LEFT JOIN result r ON r.tool = t.tool AND r.chunk_rate_per_s = shared.rate
ORDER BY place

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
-- Of each column of the tables above: who is first, and how the recorder stands to the best peer,
-- where there is one at that rate.
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
GROUP BY measure, rate HAVING count(*) FILTER (place > 0) > 0 ORDER BY measure, rate

-- name: goals
-- The project's own goals, and whether this run met them. Closer: the smallest p99 error of a peer
-- over the recorder's. Ceilings: the recorder's over the lowest rate that every peer failed to hold,
-- so that no rate between two of those tried could make the ratio smaller.
WITH long AS (
    SELECT place = 0 AS is_ours, chunk_rate_per_s AS rate, unnest([
        {'measure': 'a gap', 'p99_ms': gap_p99_ms}, {'measure': 'TTFT', 'p99_ms': ttft_p99_ms}
    ], recursive := true)
    FROM asked JOIN tool USING (tool) LEFT JOIN result USING (tool, chunk_rate_per_s)
),
sides AS (
    SELECT measure, rate, min(p99_ms) FILTER (is_ours) AS ours,
        min(p99_ms) FILTER (NOT is_ours) AS peer
    FROM long GROUP BY measure, rate
),
closer AS (
    SELECT measure, rate, CASE WHEN peer IS NOT NULL THEN coalesce(peer / ours, 0) END AS times
    FROM sides
),
ceilings AS (
    SELECT any_value(ceiling_per_s) FILTER (place = 0)::BIGINT AS ours,
        max(ceiling_per_s) FILTER (place > 0)::BIGINT AS peer,
        max(coalesce(past_per_s, ceiling_per_s)) FILTER (place > 0)::BIGINT AS past_peer
    FROM ceiling JOIN tool USING (tool)
),
found AS (
    SELECT 0 AS place, 'p99 error of a gap at 50,000 chunks/s, ms' AS goal,
        'under 0.05' AS wanted, max(gap_p99_ms) AS found, max(gap_p99_ms) < 0.05 AS met,
        coalesce(format('{:.3f} in the worst repeat', max(gap_p99_worst_ms)), 'not measured') AS note
    FROM result JOIN tool USING (tool) WHERE tool.place = 0 AND chunk_rate_per_s = 50000
    UNION ALL
    SELECT 1, 'times closer than the best peer at the worst rate, p99 of ' || measure, 'at least 10',
        min(times), min(times) >= 10,
        concat_ws('; ', format('worst at {:,}', arg_min(rate, times)::BIGINT),
            'no peer has a p99 at ' || string_agg(format('{:,}', rate::BIGINT), ' and ' ORDER BY rate)
                FILTER (times IS NULL))
    FROM closer GROUP BY measure
    UNION ALL
    SELECT 2, 'ceiling over the best peer''s, at least', 'at least 3', ours / past_peer,
        ours / past_peer >= 3,
        format('the recorder held {}; the best peer {}{}', coalesce(format('{:,}', ours), 'no rate'),
            coalesce(format('{:,}', peer), 'no rate'),
            if(past_peer = peer, '', format(', and not {:,}', past_peer)))
    FROM ceilings
)
SELECT goal, wanted, found, if(met, 'yes', 'no') AS met, note FROM found ORDER BY place, goal
