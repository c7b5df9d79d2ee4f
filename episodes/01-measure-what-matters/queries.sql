-- Episode 01. Only VALID cells enter a metric; `timeline` shows the others too, and `slogan` reads
-- the engines' logs whole.

-- name: closed_latency
-- Closed loop: median of each latency by requests in flight, with its interval over repeats, ms.
SELECT engine, in_flight, metric, p50_ms, low_ms, high_ms, repeats, requests
FROM level_p50
WHERE sweep = 'closed' AND metric IN ('ttft', 'tpot', 'e2e')
ORDER BY engine, metric, in_flight

-- name: closed_throughput
-- Closed loop: output tokens and requests per second of the measured phase, with intervals.
SELECT engine, in_flight, output_tok_per_s, tok_low_per_s, tok_high_per_s, requests_per_s,
    repeats, requests, failed
FROM level_outcome WHERE sweep = 'closed' ORDER BY engine, in_flight

-- name: closed_table
-- The closed loop in one table: throughput of the whole measured phase, with its interval, and of the
-- window between the end of the first round and the last request sent; and the medians.
SELECT t.engine, t.in_flight, t.output_tok_per_s, t.tok_low_per_s, t.tok_high_per_s,
    any_value(s.steady_tok_per_s) AS steady_tok_per_s,
    max(l.p50_ms) FILTER (l.metric = 'ttft') AS ttft_ms,
    max(l.p50_ms) FILTER (l.metric = 'tpot') AS tpot_ms,
    max(l.p50_ms) FILTER (l.metric = 'e2e') / 1000 AS e2e_s,
    t.requests, t.repeats
FROM level_outcome t JOIN level_p50 l USING (engine, variant, sweep, in_flight)
LEFT JOIN (
    SELECT engine, in_flight, avg(output_tok_per_s) AS steady_tok_per_s FROM steady_outcome
    WHERE sweep = 'closed' GROUP BY ALL
) s ON (s.engine, s.in_flight) = (t.engine, t.in_flight)
WHERE t.sweep = 'closed' GROUP BY ALL ORDER BY t.engine, t.in_flight

-- name: growth
-- Each level of the closed loop over the one below it: throughput and the median time of a request,
-- as the mean over repeats of the ratio within a repeat, with its 95 % Student-t interval.
WITH repeat_of AS (
    SELECT o.engine, o.repeat, o.in_flight, any_value(o.output_tok_per_s) AS rate,
        quantile_cont(r.value_ms, 0.5) AS e2e_ms
    FROM outcome o JOIN request_metric r ON r.cell_id = o.cell_id AND r.metric = 'e2e'
    WHERE o.sweep = 'closed' AND o.verdict = 'VALID' GROUP BY ALL),
step AS (
    SELECT engine, repeat, in_flight AS to_level, lag(in_flight) OVER w AS from_level,
        rate / lag(rate) OVER w AS throughput, e2e_ms / lag(e2e_ms) OVER w AS e2e
    FROM repeat_of WINDOW w AS (PARTITION BY engine, repeat ORDER BY in_flight))
SELECT engine, from_level, to_level,
    avg(throughput) AS throughput_times, low95(throughput) AS throughput_low,
    high95(throughput) AS throughput_high,
    avg(e2e) AS e2e_times, low95(e2e) AS e2e_low, high95(e2e) AS e2e_high
FROM step WHERE from_level * 2 = to_level GROUP BY ALL ORDER BY engine, to_level

-- name: open_latency
-- Open loop: median latencies by share of the measured capacity, from the time a request was due.
SELECT engine, capacity_frac * 100 AS capacity_percent, rate_per_s, metric,
    p50_ms, low_ms, high_ms, repeats, requests
FROM level_p50
WHERE sweep = 'open' AND metric IN ('ttft_from_scheduled', 'tpot', 'e2e_from_scheduled')
ORDER BY engine, metric, capacity_frac

-- name: open_table
-- The open loop in one table, with the cells that are left out.
WITH cells AS (
    SELECT engine, capacity_frac, any_value(rate_per_s) AS rate_per_s, count(*) AS cells,
        count(*) FILTER (verdict = 'VALID') AS valid
    FROM cell WHERE sweep = 'open' GROUP BY ALL),
latency AS (
    SELECT engine, capacity_frac,
        max(p50_ms) FILTER (metric = 'ttft_from_scheduled') AS ttft_ms,
        max(p50_ms) FILTER (metric = 'tpot') AS tpot_ms,
        max(p50_ms) FILTER (metric = 'e2e_from_scheduled') / 1000 AS e2e_s
    FROM level_p50 WHERE sweep = 'open' GROUP BY ALL)
SELECT c.engine, 100 * c.capacity_frac AS capacity_percent, c.rate_per_s, t.output_tok_per_s,
    l.ttft_ms, l.tpot_ms, l.e2e_s, c.valid, c.cells
FROM cells c LEFT JOIN latency l USING (engine, capacity_frac)
LEFT JOIN (SELECT * FROM level_outcome WHERE sweep = 'open') t USING (engine, capacity_frac)
ORDER BY c.engine, capacity_percent

-- name: capacity
-- The rate that the open loop takes shares of: the highest of the closed loop in the first repeat.
SELECT engine, max(requests_per_s) AS requests_per_s,
    arg_max(in_flight, requests_per_s) AS in_flight
FROM outcome WHERE sweep = 'closed' AND repeat = 1 AND verdict = 'VALID'
GROUP BY engine ORDER BY engine

-- name: trade_off
-- Every level of both loops: what it delivers against what a token costs in waiting.
SELECT t.engine, t.sweep, coalesce(t.in_flight, round(100 * t.capacity_frac)::INT) AS level,
    t.output_tok_per_s, l.p50_ms AS tpot_ms, l.low_ms, l.high_ms
FROM level_outcome t
JOIN level_p50 l ON (l.engine, l.sweep) = (t.engine, t.sweep) AND l.metric = 'tpot'
    AND l.in_flight IS NOT DISTINCT FROM t.in_flight
    AND l.capacity_frac IS NOT DISTINCT FROM t.capacity_frac
WHERE t.sweep IN ('closed', 'open') ORDER BY t.engine, t.sweep, level

-- name: matched
-- What "N in flight" came to. Client: time that requests were out, over the time of the measured
-- phase. Running and waiting: the engine's own gauges over the same time, each value held until the
-- next; mean over the VALID cells of a level.
WITH held AS (
    SELECT g.cell_id, g.gauge, g.value, greatest(g.t_ns, c.measured_ns) AS from_ns,
        least(coalesce(lead(g.t_ns) OVER (PARTITION BY g.cell_id, g.gauge ORDER BY g.t_ns),
            c.ended_ns), c.ended_ns) AS to_ns
    FROM engine_gauge g JOIN cell c USING (cell_id)
    WHERE g.gauge IN ('running', 'waiting')),
gauge AS (
    SELECT cell_id, gauge, sum(value * (to_ns - from_ns)) / sum(to_ns - from_ns) AS value
    FROM held WHERE to_ns > from_ns GROUP BY ALL),
client AS (
    SELECT c.cell_id, c.engine, c.sweep, c.in_flight, c.capacity_frac,
        sum(r.ended_ns - r.sent_ns) / any_value(c.ended_ns - c.measured_ns) AS client
    FROM cell c JOIN request r ON r.cell_id = c.cell_id AND r.phase = 'measured'
    WHERE c.verdict = 'VALID' AND c.sweep IN ('closed', 'open') GROUP BY ALL)
SELECT engine, sweep, in_flight, 100 * capacity_frac AS capacity_percent, avg(client) AS client,
    avg(g.value) FILTER (g.gauge = 'running') AS running,
    avg(g.value) FILTER (g.gauge = 'waiting') AS waiting
FROM client LEFT JOIN gauge g USING (cell_id)
GROUP BY ALL ORDER BY engine, sweep, in_flight, capacity_percent

-- name: little
-- Little's law on the closed loop: requests per second times the mean time of a request should be
-- the number in flight, if nothing is left out. Mean over VALID cells.
SELECT engine, in_flight, avg(rate) AS requests_per_s, avg(mean_s) AS mean_s,
    avg(rate * mean_s) AS product
FROM (
    SELECT c.engine, c.in_flight, c.cell_id,
        count(*) / ((max(r.ended_ns) - any_value(c.measured_ns)) / 1e9) AS rate,
        avg(r.ended_ns - r.sent_ns) / 1e9 AS mean_s
    FROM cell c JOIN request r ON r.cell_id = c.cell_id AND r.phase = 'measured'
    WHERE c.sweep = 'closed' AND c.verdict = 'VALID' GROUP BY ALL)
GROUP BY ALL ORDER BY engine, in_flight

-- name: slogan
-- One recording, many "tokens per second". Each definition on each engine, over VALID cells. 255 is
-- the example's number.
WITH top AS (SELECT max(in_flight) AS n FROM cell WHERE sweep = 'closed'),
best AS (
    SELECT engine, max(output_tok_per_s) AS tok_per_s FROM level_outcome
    WHERE sweep = 'closed' GROUP BY engine),
one AS (
    SELECT engine, 1000 / avg(p50_ms) FILTER (metric = 'tpot') AS decode,
        1000 * any_value(prompt_tokens) / avg(p50_ms) FILTER (metric = 'ttft') AS prefill
    FROM level_p50 WHERE sweep = 'closed' AND in_flight = 1 GROUP BY engine),
streams AS (
    SELECT engine, in_flight * 1000 / p50_ms AS tok_per_s FROM level_p50, top
    WHERE sweep = 'closed' AND metric = 'tpot' AND in_flight = top.n),
whole AS (
    SELECT c.engine, avg(per_s) AS tok_per_s FROM (
        SELECT engine, cell_id, sum(server_prompt_tokens + output_tokens)
            / ((any_value(x.ended_ns) - any_value(x.measured_ns)) / 1e9) AS per_s
        FROM measured_request m JOIN (SELECT cell_id, ended_ns, measured_ns FROM cell) x
        USING (cell_id), top WHERE m.sweep = 'closed' AND m.in_flight = top.n GROUP BY ALL) c
    GROUP BY c.engine),
chunk_of AS (  -- of two cells alone: the view `chunk` would sort those of every cell
    SELECT engine, cell_id, tokens, first_token_ns + 1000 * sum(gap_us) OVER (
        PARTITION BY cell_id, request_id ORDER BY i)::BIGINT AS arrival_ns
    FROM (
        SELECT engine, cell_id, request_id, first_token_ns, unnest(chunk_tokens) AS tokens,
            unnest(list_concat([0::UINTEGER], chunk_gap_us)) AS gap_us,
            unnest(range(len(chunk_gap_us) + 1)) AS i
        FROM measured_request, top
        WHERE sweep = 'closed' AND in_flight = top.n AND repeat = 1 AND error IS NULL)),
second AS (
    SELECT engine, max(tokens) AS tok_per_s FROM (
        SELECT k.engine, k.cell_id, (k.arrival_ns - c.measured_ns) // 1000000000 AS at_s,
            sum(coalesce(k.tokens, 1)) AS tokens
        FROM chunk_of k JOIN cell c USING (cell_id) GROUP BY ALL)
    GROUP BY engine),
log AS (
    SELECT r.engine, max(CAST(regexp_extract(l.line,
        '(?:Avg generation throughput: |gen throughput \(token/s\): )([\d.]+)', 1) AS DOUBLE))
        AS tok_per_s
    FROM log_line l JOIN engine_run r USING (run_id)
    WHERE regexp_matches(l.line, 'generation throughput|gen throughput') GROUP BY r.engine),
named AS (
    SELECT 1 AS number, 'one request alone: 1 / TPOT' AS definition, engine, decode AS tok_per_s FROM one
    UNION ALL SELECT 2, 'all output, most in flight', b.engine, b.output_tok_per_s
        FROM level_outcome b, top WHERE b.sweep = 'closed' AND b.in_flight = top.n
    UNION ALL SELECT 3, 'all output, best level', engine, tok_per_s FROM best
    UNION ALL SELECT 4, 'streams × 1 / TPOT: without the first tokens', engine, tok_per_s FROM streams
    UNION ALL SELECT 5, 'the best single second of one repeat', engine, tok_per_s FROM second
    UNION ALL SELECT 6, 'the highest in the engine''s own log', engine, tok_per_s FROM log
    UNION ALL SELECT 7, 'prompt and output tokens', engine, tok_per_s FROM whole
    UNION ALL SELECT 8, 'prompt tokens alone: prompt / TTFT', engine, prefill FROM one)
SELECT number, definition, engine, tok_per_s, 255 AS said, tok_per_s >= 255 AS reaches,
    min(tok_per_s) OVER engine AS lowest, max(tok_per_s) OVER engine AS highest,
    count(*) FILTER (tok_per_s >= 255) OVER engine AS reaching, count(*) OVER engine AS definitions
FROM named WHERE tok_per_s IS NOT NULL
WINDOW engine AS (PARTITION BY engine) ORDER BY number, engine

-- name: timeline
-- Open loop, first repeat: what the client saw and what the engine said, on one axis of time.
-- Requests: TTFT from the time it was due, s. Gauges: a row where the value changed, at most one a
-- second. Core: the engine's CPU seconds per second. GPU: NVML's samples; none on a CPU.
WITH cells AS (
    SELECT cell_id, engine, capacity_frac, measured_ns, ended_ns, verdict FROM cell
    WHERE sweep = 'open' AND repeat = 1),
gauge AS (
    SELECT c.engine, c.capacity_frac, g.gauge AS series,
        (g.t_ns - c.measured_ns) // 1000000000 AS at_s, arg_max(g.value, g.t_ns) AS value
    FROM engine_gauge g JOIN cells c USING (cell_id)
    WHERE g.t_ns BETWEEN c.measured_ns AND c.ended_ns GROUP BY ALL),
cpu AS (
    SELECT c.engine, c.capacity_frac, 'engine_core' AS series, (h.t_ns - c.measured_ns) // 1000000000
        AS at_s, 100 * (max(h.engine_cpu_s) - min(h.engine_cpu_s))
            / nullif((max(h.t_ns) - min(h.t_ns)) / 1e9, 0) AS value
    FROM host_sample h JOIN cells c USING (cell_id)
    WHERE h.t_ns BETWEEN c.measured_ns AND c.ended_ns GROUP BY ALL),
gpu AS (
    SELECT c.engine, c.capacity_frac, series, (t_ns - c.measured_ns) // 1000000000 AS at_s,
        avg(value) AS value
    FROM (
        UNPIVOT (
            SELECT cell_id, t_ns, sm_clock_mhz::DOUBLE AS sm_clock_mhz, power_w,
                memory_used_bytes / 1e9 AS memory_gb, temperature_c::DOUBLE AS temperature_c
            FROM gpu_sample)
        ON sm_clock_mhz, power_w, memory_gb, temperature_c INTO NAME series VALUE value)
    JOIN cells c USING (cell_id) WHERE t_ns BETWEEN c.measured_ns AND c.ended_ns GROUP BY ALL),
request AS (
    SELECT c.engine, c.capacity_frac, 'ttft' AS series, (r.scheduled_ns - c.measured_ns) / 1e9 AS at_s,
        (r.first_token_ns - r.scheduled_ns) / 1e9 AS value
    FROM request r JOIN cells c USING (cell_id) WHERE r.phase = 'measured' AND r.error IS NULL)
SELECT engine, 100 * capacity_frac AS capacity_percent, series, round(at_s, 1) AS at_s,
    round(value, 2) AS value
FROM (FROM request UNION ALL FROM gauge UNION ALL FROM cpu UNION ALL FROM gpu)
WHERE value IS NOT NULL ORDER BY engine, capacity_percent, series, at_s

-- name: anchors
-- The same answers from two starting points: TTFT from when a request was due, and from when it was
-- sent. Open loop, p50 over repeats, and the largest lag of any request, ms.
SELECT a.engine, 100 * a.capacity_frac AS capacity_percent,
    a.p50_ms AS from_scheduled_ms, b.p50_ms AS from_sent_ms, lag.worst_ms
FROM level_p50 a
JOIN level_p50 b ON (b.engine, b.sweep, b.capacity_frac) = (a.engine, a.sweep, a.capacity_frac)
    AND b.metric = 'ttft'
JOIN (
    SELECT engine, capacity_frac, max(sent_ns - scheduled_ns) / 1e6 AS worst_ms
    FROM measured_request WHERE sweep = 'open' GROUP BY ALL
) lag ON (lag.engine, lag.capacity_frac) = (a.engine, a.capacity_frac)
WHERE a.sweep = 'open' AND a.metric = 'ttft_from_scheduled' ORDER BY ALL

-- name: equal_work
-- The proof of equal work, over the requests that enter the figures. Equal hashes are equal sets.
SELECT engine, sweep, count(*) AS requests, count(DISTINCT prompt_hash) AS prompts,
    min(server_prompt_tokens) AS tokens_in_min, max(server_prompt_tokens) AS tokens_in_max,
    min(output_tokens) AS tokens_out_min, max(output_tokens) AS tokens_out_max,
    sum(cached_tokens)::BIGINT AS cached_tokens
FROM measured_request WHERE error IS NULL GROUP BY ALL ORDER BY sweep, engine

-- name: verdicts
-- Cells and verdicts, and what each engine answered before it was measured (first line).
SELECT c.engine, r.version, count(*) AS cells, count(*) FILTER (c.verdict = 'VALID') AS valid,
    split_part(any_value(r.probe_answer), chr(10), 1) AS answer
FROM cell c JOIN engine_run r USING (run_id) GROUP BY ALL ORDER BY c.engine

-- name: rejected
-- The cells that no figure uses, and why.
SELECT engine, sweep, coalesce(in_flight::VARCHAR || ' in flight',
    round(100 * capacity_frac)::INT || ' % of capacity') AS level, repeat, unnest(reasons) AS reason
FROM cell WHERE verdict = 'INVALID' ORDER BY sweep, level, engine, repeat

-- name: client
-- Health of the client over all cells: the worst of each.
SELECT max(CAST(client ->> 'cpu_frac' AS DOUBLE)) * 100 AS cpu_percent,
    max(CAST(client ->> 'ceiling_frac' AS DOUBLE)) * 100 AS ceiling_percent,
    max(CAST(client ->> 'user_lag_p99_ns' AS DOUBLE)) / 1e6 AS user_lag_ms,
    100.0 * sum(CAST(client ->> 'shared_chunks' AS BIGINT))
        / sum(CAST(client ->> 'chunks' AS BIGINT)) AS shared_percent,
    max(CAST(client ->> 'schedule_lag_p99_ns' AS DOUBLE)) FILTER (load <> 'closed') / 1e6
        AS schedule_lag_ms
FROM cell WHERE verdict = 'VALID'

-- name: rejected_count
-- How many cells are INVALID.
SELECT count(*) AS cells FROM cell WHERE verdict = 'INVALID'

-- name: try_fit
-- Constants of the small model: least squares of the medians of TTFT and TPOT on the requests in
-- flight, in the closed loop at 1, 4 and 16 in flight alone.
SELECT engine, regr_intercept(p50_ms, in_flight) FILTER (metric = 'ttft') AS base_ms,
    regr_slope(p50_ms, in_flight) FILTER (metric = 'ttft') AS prefill_ms,
    regr_intercept(p50_ms, in_flight) FILTER (metric = 'tpot') AS weights_ms,
    regr_slope(p50_ms, in_flight) FILTER (metric = 'tpot') AS own_ms
FROM level_p50 WHERE sweep = 'closed' AND in_flight IN (1, 4, 16)
GROUP BY engine ORDER BY engine

-- name: try_points
-- What the small model is held against: the closed loop, level by level. part: the levels 1, 4 and
-- 16 fitted its constants, 2 and 8 did not.
SELECT p.engine, p.in_flight, any_value(c.output_tokens) AS output_tokens,
    any_value(o.output_tok_per_s) AS tok_per_s,
    any_value(p.p50_ms) FILTER (metric = 'tpot') AS tpot_ms,
    any_value(p.p50_ms) FILTER (metric = 'ttft') AS ttft_ms,
    any_value(p.p50_ms) FILTER (metric = 'e2e') / 1000 AS request_s,
    CASE WHEN p.in_flight IN (1, 4, 16) THEN 'fit' ELSE 'check' END AS part
FROM level_p50 p JOIN level_outcome o USING (engine, sweep, in_flight)
JOIN (SELECT DISTINCT engine, sweep, output_tokens FROM cell) c USING (engine, sweep)
WHERE p.sweep = 'closed' GROUP BY p.engine, p.in_flight ORDER BY ALL
