-- part: declared
-- The objective, the search and the price, as the recorded declaration says.
WITH said AS (
    SELECT split_part(experiment_toml, '[tier.' || tier || ']', 2) AS text FROM recording)
SELECT regexp_extract(text, 'slo_ttft_ms = ([0-9.]+)', 1)::DOUBLE AS ttft_bound_ms,
    regexp_extract(text, 'slo_tpot_ms = ([0-9.]+)', 1)::DOUBLE AS tpot_bound_ms,
    regexp_extract(text, 'slo_quantile = ([0-9.]+)', 1)::DOUBLE AS quantile,
    regexp_extract(text, 'search_frac = \[([0-9.]+)', 1)::DOUBLE AS low_frac,
    regexp_extract(text, 'search_frac = \[[0-9.]+, ([0-9.]+)', 1)::DOUBLE AS high_frac,
    regexp_extract(text, 'usd_per_hour = ([0-9.]+)', 1)::DOUBLE AS usd_per_hour FROM said

-- part: judged
-- Every measured request of every cell, rejected ones included: its TTFT from when it was due and
-- its TPOT, endless where it failed, and whether it met both bounds.
-- uses: declared
SELECT *, ttft_ms <= ttft_bound_ms AND tpot_ms <= tpot_bound_ms AS met
FROM (
    SELECT c.cell_id, c.engine, c.sweep, c.repeat, c.in_flight, c.search_step, c.capacity_frac,
        c.rate_per_s, c.verdict, c.reasons, r.error, r.scheduled_ns, r.last_token_ns, r.output_tokens,
        r.asked_output_tokens,
        if(r.error IS NULL, (first_token_ns - scheduled_ns) / 1e6, 'inf'::DOUBLE) AS ttft_ms,
        if(r.error IS NULL, coalesce((last_token_ns - first_token_ns) / 1e6
            / nullif(r.output_tokens - coalesce(r.chunk_tokens[1], 1), 0), 'inf'::DOUBLE),
            'inf'::DOUBLE) AS tpot_ms
    FROM cell c JOIN request r USING (cell_id) WHERE r.phase = 'measured'), declared

-- part: line
-- N requests in flight take a + b N each: a line through the first and the last closed level.
-- capacity: the highest rate of the first repeat, which the shares of the open loop are of.
WITH level AS (
    SELECT engine, in_flight AS n, any_value(in_flight) / avg(requests_per_s) AS each_s,
        max(requests_per_s) FILTER (repeat = 1) AS first_repeat_per_s
    FROM outcome WHERE sweep = 'closed' AND verdict = 'VALID' GROUP BY ALL)
SELECT engine, min(n) AS first_n, max(n) AS last_n, max(first_repeat_per_s) AS capacity_per_s,
    (arg_max(each_s, n) - arg_min(each_s, n)) / (max(n) - min(n)) AS b_s,
    arg_min(each_s, n) - min(n) * b_s AS a_s
FROM level GROUP BY engine

-- part: step
-- The search, step by step: the rate, the quantiles that the objective bounds, and what the step
-- said. A drift or failed requests are the server's own answer; for any other reason a step says
-- nothing, and the next one tries its rate again.
-- uses: judged
SELECT *, CASE WHEN reasons = [] AND ttft_ms <= ttft_bound_ms AND tpot_ms <= tpot_bound_ms THEN 'held'
        WHEN coalesce(list_bool_and(list_transform(reasons, lambda x:
            split_part(x, ':', 1) IN ('steady_state', 'errors'))), true) THEN 'not held'
        ELSE 'says nothing' END AS result
FROM (
    SELECT engine, repeat, search_step, rate_per_s, reasons, ttft_bound_ms, tpot_bound_ms, low_frac,
        high_frac, list_sort(list(ttft_ms))[ceil(quantile * count(*))::BIGINT] AS ttft_ms,
        list_sort(list(tpot_ms))[ceil(quantile * count(*))::BIGINT] AS tpot_ms
    FROM judged WHERE search_step IS NOT NULL
    GROUP BY engine, repeat, search_step, rate_per_s, reasons, ttft_bound_ms, tpot_bound_ms, low_frac,
        high_frac, quantile)

-- part: search
-- The highest rate that held the objective, as each repeat's search left it: between the highest
-- rate that held and the lowest that did not, or an end of the declared bracket.
-- uses: step, line
SELECT engine, repeat, capacity_per_s, count(*) FILTER (result = 'says nothing') AS silent,
    count(*) FILTER (result = 'held') AS held, count(*) FILTER (result = 'not held') AS failed,
    coalesce(max(rate_per_s) FILTER (result = 'held'), capacity_per_s * any_value(low_frac))
        AS low_per_s,
    coalesce(min(rate_per_s) FILTER (result = 'not held'), capacity_per_s * any_value(high_frac))
        AS high_per_s,
    (low_per_s + high_per_s) / 2 AS middle_per_s
FROM step JOIN line USING (engine) GROUP BY engine, repeat, capacity_per_s

-- part: gauged
-- The mean of the engine's running and waiting requests over the looks at its gauges, by cell.
WITH looked AS (
    SELECT s.cell_id, s.t_ns, g.gauge FROM scrape s JOIN cell c USING (cell_id),
        (SELECT unnest(['running', 'waiting']) AS gauge) g
    WHERE s.t_ns BETWEEN c.measured_ns AND c.ended_ns)
SELECT cell_id, sum(value) / count(DISTINCT t_ns) AS had, count(DISTINCT t_ns) AS looks FROM (
    SELECT l.cell_id, l.t_ns, g.value FROM looked l ASOF JOIN engine_gauge g
        ON l.cell_id = g.cell_id AND l.gauge = g.gauge AND l.t_ns >= g.t_ns)
GROUP BY cell_id

-- name: verdicts
-- What ran: the pool that each engine said it has, cells and verdicts, and its answer before it was
-- measured (the first line).
SELECT c.variant, r.version, any_value(r.kv_pool_tokens) AS pool_tokens, count(*) AS cells,
    count(*) FILTER (c.verdict = 'VALID') AS valid,
    split_part(any_value(r.probe_answer), chr(10), 1) AS answer
FROM cell c JOIN engine_run r USING (run_id) GROUP BY ALL ORDER BY c.variant DESC

-- name: rejected
-- The cells that no metric uses, and the names of the reasons.
SELECT c.variant, c.sweep, count(*) AS cells,
    string_agg(DISTINCT split_part(reason, ':', 1), ', ') AS reasons
FROM cell c, unnest(c.reasons) AS t(reason) WHERE c.verdict <> 'VALID'
GROUP BY ALL ORDER BY c.sweep, c.variant

-- name: drifts
-- The cells in which the time of a request drifted, by direction: with a queue that grows the last to
-- come take longer, and where those that came before are held up, the first.
SELECT engine, count(*) AS cells, count(*) FILTER (first_ms > last_ms) AS first_longer
FROM (
    SELECT c.engine, regexp_extract(reason, 'took ([0-9]+) ms in the first', 1)::INT AS first_ms,
        regexp_extract(reason, 'and ([0-9]+) ms in the last', 1)::INT AS last_ms
    FROM cell c, unnest(c.reasons) AS t(reason) WHERE starts_with(reason, 'steady_state: requests'))
GROUP BY engine ORDER BY engine

-- name: rejected_count
-- How many cells are INVALID.
SELECT count(*) AS cells FROM cell WHERE verdict <> 'VALID'

-- name: fit
-- The line, the limit of the throughput, which is 1/b, and where half of it is reached, which is a/b.
-- uses: line
SELECT engine, 1000 * a_s AS a_ms, 1000 * b_s AS b_ms, 1 / b_s AS limit_per_s,
    a_s / b_s AS half_in_flight, first_n, last_n, capacity_per_s
FROM line ORDER BY engine DESC

-- part: loop
-- The closed loop by level: requests a second with their interval over repeats, what N / (a + b N)
-- says, the share of requests that met the objective (both bounds), and how many that is a second.
-- uses: judged, line
WITH met AS (
    SELECT cell_id, avg(met::INT) AS met_frac FROM judged
    WHERE sweep = 'closed' AND verdict = 'VALID' GROUP BY ALL),
level AS (
    SELECT o.engine, o.in_flight, avg(o.requests_per_s) AS requests_per_s,
        low95(o.requests_per_s) AS low, high95(o.requests_per_s) AS high,
        avg(o.requests_per_s * m.met_frac) AS good_per_s,
        low95(o.requests_per_s * m.met_frac) AS good_low,
        high95(o.requests_per_s * m.met_frac) AS good_high, 100 * avg(m.met_frac) AS met_percent,
        avg(o.output_tok_per_s) AS tok_per_s, count(*) AS repeats, sum(o.requests)::BIGINT AS requests
    FROM outcome o JOIN met m USING (cell_id) GROUP BY ALL),
latency AS (
    SELECT engine, in_flight,
        max(p50_ms) FILTER (metric = 'ttft') AS ttft_ms,
        max(p50_ms) FILTER (metric = 'tpot') AS tpot_ms,
        max(p50_ms) FILTER (metric = 'e2e') AS e2e_ms
    FROM level_p50 WHERE sweep = 'closed' GROUP BY ALL)
SELECT l.engine, l.in_flight, requests_per_s, low, high,
    in_flight / (a_s + b_s * in_flight) AS predicted_per_s,
    CASE WHEN in_flight NOT IN (first_n, last_n) THEN
        100 * (requests_per_s * (a_s + b_s * in_flight) / in_flight - 1) END AS gap_percent,
    good_per_s, good_low, good_high, met_percent, tok_per_s, ttft_ms, tpot_ms, e2e_ms, repeats,
    requests, in_flight = arg_max(in_flight, requests_per_s) OVER e AS most_work,
    in_flight = arg_max(in_flight, good_per_s) OVER e AS most_good
FROM level l JOIN line USING (engine) JOIN latency USING (engine, in_flight)
WINDOW e AS (PARTITION BY l.engine)

-- name: closed
-- The closed loop by level.
-- uses: loop
SELECT * FROM loop ORDER BY engine DESC, in_flight

-- name: worst_level
-- By engine, the level of the closed loop that is farthest from N / (a + b N).
-- uses: loop
SELECT engine, arg_max(in_flight, abs(gap_percent)) AS in_flight,
    arg_max(gap_percent, abs(gap_percent)) AS gap_percent
FROM loop GROUP BY engine ORDER BY engine DESC

-- name: turn
-- By engine: the closed level with the most throughput and the one with the most goodput, and what
-- the second would be at the first.
-- uses: judged
WITH cell_good AS (
    SELECT engine, in_flight, cell_id, avg(met::INT) AS met_frac
    FROM judged WHERE sweep = 'closed' AND verdict = 'VALID' GROUP BY ALL),
level AS (
    SELECT g.engine, g.in_flight, avg(o.requests_per_s) AS done, avg(o.requests_per_s * met_frac)
        AS good
    FROM cell_good g JOIN outcome o USING (cell_id) GROUP BY ALL)
SELECT engine, arg_max(in_flight, done) AS most_work_at, max(done) AS most_work_per_s,
    arg_max(good, done) AS good_there_per_s, arg_max(in_flight, good) AS most_good_at,
    max(good) AS most_good_per_s, arg_max(done, good) AS work_there_per_s,
    100 * (1 - arg_max(good, done) / nullif(max(good), 0)) AS good_lost_percent,
    arg_max(in_flight, done) > arg_max(in_flight, good) AS turns
FROM level GROUP BY engine ORDER BY engine DESC

-- name: offered
-- Every cell of the open loop and of the search, rejected ones included: the rate offered, what was
-- done, what met the objective, the mean time of a request from when it was due, and what
-- (a + b) / (1 - rate x b) says of it. Shares are of the capacity; load_frac is of the limit 1/b.
-- uses: judged, line
WITH answered AS (
    SELECT j.cell_id, j.engine, j.sweep, j.repeat, j.search_step, j.capacity_frac, j.rate_per_s,
        j.verdict, any_value(o.requests_per_s) AS done_per_s, any_value(o.measured_s) AS measured_s,
        count(*) FILTER (met) AS met, count(*) AS requests,
        avg(last_token_ns - scheduled_ns) / 1e9 AS mean_s,
        (count(*) - 1) * 1e9 / (max(scheduled_ns) - min(scheduled_ns)) AS came_per_s
    FROM judged j JOIN outcome o USING (cell_id)
    WHERE j.sweep IN ('open', 'over', 'search') GROUP BY ALL)
SELECT engine, sweep, repeat, search_step, round(capacity_frac, 2) AS capacity_frac, rate_per_s,
    came_per_s, 100 * rate_per_s / capacity_per_s AS capacity_percent, rate_per_s * b_s AS load_frac,
    done_per_s, met / measured_s AS good_per_s, 100.0 * met / requests AS met_percent,
    mean_s, CASE WHEN rate_per_s * b_s < 1 THEN (a_s + b_s) / (1 - rate_per_s * b_s) END
        AS predicted_s,
    verdict = 'VALID' AS valid
FROM answered JOIN line USING (engine)
ORDER BY engine DESC, rate_per_s

-- name: waiting
-- The open loop by declared share: VALID cells, mean time of a request from when it was due with
-- its interval over their repeats, predicted and the gap; and the objective.
-- uses: line
WITH one AS (
    SELECT c.engine, c.capacity_frac, c.repeat, c.verdict, any_value(c.rate_per_s) AS rate,
        any_value(o.requests_per_s) AS done, avg(r.last_token_ns - r.scheduled_ns) / 1e9 AS mean_s
    FROM cell c JOIN request r USING (cell_id) JOIN outcome o USING (cell_id)
    WHERE c.sweep IN ('open', 'over') AND r.phase = 'measured' GROUP BY ALL)
SELECT engine, 100 * capacity_frac AS capacity_percent, any_value(rate) AS rate_per_s,
    any_value(rate * b_s) AS load_frac, avg(done) AS done_per_s, count(*) AS cells,
    count(*) FILTER (verdict = 'VALID') AS valid, avg(mean_s) FILTER (verdict = 'VALID') AS mean_s,
    low95(if(verdict = 'VALID', mean_s, NULL)) AS low_s,
    high95(if(verdict = 'VALID', mean_s, NULL)) AS high_s,
    any_value(CASE WHEN rate * b_s < 1 THEN (a_s + b_s) / (1 - rate * b_s) END) AS predicted_s,
    any_value(a_s + b_s) AS alone_s,
    100 * (avg(mean_s) FILTER (verdict = 'VALID')
        / any_value(CASE WHEN rate * b_s < 1 THEN (a_s + b_s) / (1 - rate * b_s) END) - 1) AS gap_percent
FROM one JOIN line USING (engine) GROUP BY engine, capacity_frac
ORDER BY engine DESC, capacity_frac

-- name: prefill_steps
-- SGLang's prefill steps by load, from its log: how many prompts begin in one, what it takes, and
-- which part of the measured time such steps fill.
SELECT c.sweep, coalesce(c.in_flight::VARCHAR, format('{:.0f} %', 100 * c.capacity_frac)) AS load,
    coalesce(c.in_flight, round(100 * c.capacity_frac)::INT) AS level,
    any_value(c.rate_per_s) AS rate_per_s, count(*) AS steps,
    sum(prefill_requests) / count(*) AS prompts, median(took_ms) AS took_ms,
    1000 * sum(prefill_requests) / sum(took_ms) AS prompts_per_s
FROM scheduler_step s JOIN cell c USING (cell_id)
WHERE s.kind = 'prefill' AND s.t_ns BETWEEN c.measured_ns AND c.ended_ns
    AND c.sweep IN ('closed', 'open')
GROUP BY c.sweep, c.in_flight, c.capacity_frac ORDER BY c.sweep, c.in_flight, c.capacity_frac

-- name: steps
-- The search, step by step, and which bound was not held.
-- uses: step, line
SELECT engine, repeat, search_step, rate_per_s, 100 * rate_per_s / capacity_per_s AS capacity_percent,
    ttft_ms, tpot_ms, result,
    CASE WHEN reasons <> [] THEN array_to_string(list_transform(reasons, lambda x:
            split_part(x, ':', 1)), ', ')
        WHEN ttft_ms > ttft_bound_ms AND tpot_ms > tpot_bound_ms THEN 'both'
        WHEN ttft_ms > ttft_bound_ms THEN 'TTFT' WHEN tpot_ms > tpot_bound_ms THEN 'TPOT' END AS by
FROM step JOIN line USING (engine) ORDER BY engine DESC, repeat, search_step

-- name: found
-- What each repeat's search left, and its middle as a share of the capacity.
-- uses: search
SELECT engine, repeat, low_per_s, high_per_s, middle_per_s,
    100 * middle_per_s / capacity_per_s AS capacity_percent, silent
FROM search ORDER BY engine DESC, repeat

-- name: highest
-- The highest rate over the repeats: mean of their middles with its interval, where each repeat has
-- a step that held and one that did not (an end of the bracket that was never tried is no finding);
-- the lowest rate that did not hold; and what the closed loop predicts. The prediction: a request that finds n others takes a + b (n + 1); with Poisson
-- arrivals the number there has weights prod (load + load a / (b k)). It is the highest load at which
-- the share q of all requests take no longer than both bounds together allow, so an upper bound.
-- uses: search
WITH tokens AS (SELECT max(output_tokens) AS tokens FROM cell WHERE sweep = 'closed'),
weight AS (
    SELECT engine, load, n, a_s, b_s, exp(sum(if(n = 0, 0, ln(load
        * (1 + (a_s / b_s) / greatest(n, 1))))) OVER (PARTITION BY engine, load ORDER BY n)) AS w
    FROM line, (SELECT unnest(range(1, 100)) / 100 AS load), (SELECT unnest(range(0, 600)) AS n)),
inside AS (
    SELECT engine, load, b_s, any_value(quantile) AS quantile,
        sum(w) FILTER (a_s + b_s * (n + 1)
            <= (ttft_bound_ms + (tokens - 1) * tpot_bound_ms) / 1e3) / sum(w) AS share
    FROM weight, declared, tokens GROUP BY engine, load, b_s),
predicted AS (
    SELECT engine, max(load / b_s) AS predicted_per_s FROM inside WHERE share >= quantile
    GROUP BY engine)
SELECT *, CASE WHEN coalesce(high_per_s, least_failed_per_s) < predicted_per_s THEN 'below'
        WHEN low_per_s > predicted_per_s THEN 'above' ELSE 'tie' END AS against_predicted
FROM (
    SELECT engine, count(*) AS repeats, count(*) FILTER (held > 0) AS with_held,
        bool_and(held > 0 AND failed > 0) AS is_found,
        if(is_found, avg(middle_per_s), NULL) AS rate_per_s,
        if(is_found, low95(middle_per_s), NULL) AS low_per_s,
        if(is_found, high95(middle_per_s), NULL) AS high_per_s,
        min(s.high_per_s) AS least_failed_per_s,
        if(is_found, 100 * avg(middle_per_s / capacity_per_s), NULL) AS capacity_percent,
        any_value(capacity_per_s) AS capacity_per_s, any_value(predicted_per_s) AS predicted_per_s
    FROM search s LEFT JOIN predicted USING (engine) GROUP BY engine)
ORDER BY engine DESC

-- name: caps
-- One rate, offered to the engine without a cap, with one in front of it and with one in it: VALID
-- cells. Means of the parts of a request, ms: waiting for a connection, waiting in the engine (its own
-- account, warm-up included), the rest to the first token, and the tokens after it.
WITH way AS (
    SELECT *, CASE sweep WHEN 'open' THEN 'no cap' WHEN 'front-cap' THEN 'cap in front'
            ELSE 'cap in the engine' END AS cap
    FROM cell WHERE (sweep IN ('front-cap', 'engine-cap') OR (sweep = 'open'
        AND capacity_frac = (SELECT any_value(capacity_frac) FROM cell WHERE sweep = 'front-cap')))),
seen AS (
    SELECT cell_id, max(value) FILTER (gauge = 'running') AS running,
        max(value) FILTER (gauge = 'waiting') AS waiting
    FROM engine_gauge GROUP BY cell_id),
one AS (
    SELECT w.engine, w.cap, w.cell_id, (r.sent_ns - r.scheduled_ns) / 1e6 AS front_ms,
        (r.first_token_ns - r.scheduled_ns) / 1e6 AS ttft_ms,
        (r.first_token_ns - r.sent_ns) / 1e6 AS ttft_sent_ms,
        (r.last_token_ns - r.first_token_ns) / 1e6 AS decode_ms,
        (r.last_token_ns - r.first_token_ns) / 1e6
            / nullif(r.output_tokens - coalesce(r.chunk_tokens[1], 1), 0) AS tpot_ms,
        (r.last_token_ns - r.scheduled_ns) / 1e6 AS e2e_ms
    FROM way w JOIN request r USING (cell_id)
    WHERE w.verdict = 'VALID' AND r.phase = 'measured' AND r.error IS NULL),
queue AS (
    SELECT w.engine, w.cap, 1000 * sum(s.total_s) / sum(s.requests) AS queue_ms,
        max(seen.running) AS running, max(seen.waiting) AS waiting, count(*) AS cells
    FROM way w LEFT JOIN engine_stage s ON s.cell_id = w.cell_id AND s.stage = 'queue'
    LEFT JOIN seen ON seen.cell_id = w.cell_id WHERE w.verdict = 'VALID' GROUP BY ALL)
SELECT engine, cap, any_value(cells) AS cells, count(*) AS requests, avg(front_ms) AS front_ms,
    any_value(queue_ms) AS queue_ms, avg(ttft_sent_ms) - any_value(queue_ms) AS first_ms,
    avg(decode_ms) AS decode_ms, avg(e2e_ms) AS mean_ms, median(ttft_ms) AS ttft_p50_ms,
    quantile_cont(ttft_ms, 0.9) AS ttft_p90_ms, median(ttft_sent_ms) AS ttft_sent_p50_ms,
    median(tpot_ms) AS tpot_p50_ms, quantile_cont(tpot_ms, 0.9) AS tpot_p90_ms,
    any_value(running) AS running, any_value(waiting) AS waiting
FROM one JOIN queue USING (engine, cap) GROUP BY engine, cap
ORDER BY engine DESC, list_position(['no cap', 'cap in front', 'cap in the engine'], cap)

-- name: cap_times
-- The mean time of a request from when it was due, with a cap over without one: ratio of the cells of
-- the same repeat in which both are VALID, with its interval over the repeats.
WITH one AS (
    SELECT c.engine, c.sweep, c.repeat, avg(r.last_token_ns - r.scheduled_ns) AS mean_ns
    FROM cell c JOIN measured_request r USING (cell_id)
    WHERE c.sweep IN ('front-cap', 'engine-cap') OR (c.sweep = 'open'
        AND c.capacity_frac = (SELECT any_value(capacity_frac) FROM cell WHERE sweep = 'front-cap'))
    GROUP BY ALL)
SELECT b.engine, if(b.sweep = 'front-cap', 'cap in front', 'cap in the engine') AS cap,
    count(*) AS repeats, avg(b.mean_ns / a.mean_ns) AS times, low95(b.mean_ns / a.mean_ns) AS low,
    high95(b.mean_ns / a.mean_ns) AS high,
    CASE WHEN repeats < 3 THEN 'few' WHEN high < 1 THEN 'shorter' WHEN low > 1 THEN 'longer'
        ELSE 'tie' END AS said
FROM one a JOIN one b ON (a.engine, a.repeat) = (b.engine, b.repeat) AND a.sweep = 'open'
    AND b.sweep <> 'open'
GROUP BY b.engine, b.sweep ORDER BY b.engine DESC, b.sweep DESC

-- name: cap_closed
-- Sixteen in flight in a closed loop, without a cap in the engine and with one: VALID cells.
WITH way AS (
    SELECT *, sweep <> 'closed' AS capped FROM cell
    WHERE sweep IN ('closed', 'engine-cap-closed') AND verdict = 'VALID'
        AND in_flight = (SELECT any_value(in_flight) FROM cell WHERE sweep = 'engine-cap-closed'))
SELECT w.engine, w.in_flight, w.capped, count(DISTINCT w.cell_id) AS cells,
    sum(r.output_tokens) / sum(DISTINCT o.measured_s) AS tok_per_s,
    median((r.first_token_ns - r.sent_ns) / 1e6) AS ttft_ms,
    median((r.last_token_ns - r.first_token_ns) / 1e6
        / nullif(r.output_tokens - coalesce(r.chunk_tokens[1], 1), 0)) AS tpot_ms,
    median((r.last_token_ns - r.sent_ns) / 1e6) AS e2e_ms,
    1000 * any_value(q.queue_s) AS queue_ms
FROM way w JOIN request r USING (cell_id) JOIN outcome o USING (cell_id)
LEFT JOIN (
    SELECT w.engine, w.capped, sum(s.total_s) / sum(s.requests) AS queue_s
    FROM way w JOIN engine_stage s ON s.cell_id = w.cell_id AND s.stage = 'queue' GROUP BY ALL
) q ON (q.engine, q.capped) = (w.engine, w.capped)
WHERE r.phase = 'measured' AND r.error IS NULL
GROUP BY w.engine, w.in_flight, w.capped ORDER BY w.engine DESC, w.capped

-- name: pool
-- More answers than the pool holds, without a cap and with one: VALID cells. Preempted: how
-- often an engine took a running request out again, by its own counter, a cell. Longest gap: the
-- largest time between two chunks of one answer.
WITH taken AS (
    SELECT cell_id, sum(gained) AS preempted FROM (
        SELECT m.cell_id, m.labels, max(m.value) - coalesce(max(m.value) FILTER (m.t_ns = f.t_ns), 0)
            AS gained
        FROM engine_metric m JOIN (SELECT cell_id, min(t_ns) AS t_ns FROM scrape GROUP BY ALL) f
            USING (cell_id)
        WHERE m.name IN ('vllm:num_preemptions_total', 'sglang:num_retracted_requests_total')
        GROUP BY ALL)
    GROUP BY cell_id),
speed AS (
    SELECT o.variant, avg(o.output_tok_per_s) AS tok_per_s, avg(o.measured_s) AS measured_s,
        avg(coalesce(t.preempted, 0)) AS preempted, min(o.output_tok_per_s) AS tok_low,
        max(o.output_tok_per_s) AS tok_high, count(*) AS cells
    FROM outcome o LEFT JOIN taken t USING (cell_id)
    WHERE o.sweep = 'pool' AND o.verdict = 'VALID' GROUP BY o.variant),
one AS (
    SELECT engine, variant, (first_token_ns - sent_ns) / 1e9 AS ttft_s,
        (last_token_ns - sent_ns) / 1e9 AS e2e_s, list_max(chunk_gap_us) / 1e6 AS gap_s,
        cached_tokens
    FROM measured_request WHERE sweep = 'pool' AND error IS NULL)
SELECT engine, variant, variant <> engine AS capped, any_value(cells) AS cells,
    any_value(tok_per_s) AS tok_per_s, any_value(tok_low) AS tok_low, any_value(tok_high) AS tok_high,
    any_value(preempted) AS preempted, median(ttft_s) AS ttft_p50_s, max(ttft_s) AS ttft_max_s,
    median(gap_s) AS gap_p50_s, max(gap_s) AS gap_max_s, median(e2e_s) AS e2e_p50_s,
    max(e2e_s) AS e2e_max_s, count(*) FILTER (cached_tokens > 0) AS hits, count(*) AS requests
FROM one JOIN speed USING (variant) GROUP BY engine, variant ORDER BY engine DESC, capped

-- name: pool_tails
-- The two ways beside each other, by engine: ratios of no cap to the cap.
WITH one AS (
    SELECT engine, variant <> engine AS capped, repeat,
        sum(output_tokens) * 1e9 / (max(last_token_ns) - min(sent_ns)) AS rate,
        median(first_token_ns - sent_ns) AS ttft, max(first_token_ns - sent_ns) AS ttft_max,
        max(list_max(chunk_gap_us)) AS gap_max
    FROM measured_request WHERE sweep = 'pool' AND error IS NULL GROUP BY ALL)
SELECT e.engine, avg(a.rate / b.rate) AS throughput_times, low95(a.rate / b.rate) AS low,
    high95(a.rate / b.rate) AS high, low <= 1 AND high >= 1 AS tie, avg(a.ttft / b.ttft) AS ttft_times,
    avg(a.gap_max / b.gap_max) AS gap_times, count(b.engine) AS repeats
FROM (SELECT DISTINCT engine FROM cell) e LEFT JOIN one a ON a.engine = e.engine AND NOT a.capped
LEFT JOIN one b ON b.engine = a.engine AND b.repeat = a.repeat AND b.capped
GROUP BY e.engine ORDER BY e.engine DESC

-- name: pool_requests
-- Each answer of the first repeat with a full pool, s since the cell began: sent, first token, last
-- token, and the ends of the longest gap between two of its chunks.
SELECT variant, row_number() OVER (PARTITION BY variant ORDER BY first_token_ns) AS place,
    (sent_ns - begun_ns) / 1e9 AS sent_s, (first_token_ns - begun_ns) / 1e9 AS first_s,
    (last_token_ns - begun_ns) / 1e9 AS last_s,
    (first_token_ns - begun_ns) / 1e9 + coalesce(list_sum(chunk_gap_us[1:longest - 1]::BIGINT[]), 0) / 1e6
        AS gap_from_s,
    (first_token_ns - begun_ns) / 1e9 + list_sum(chunk_gap_us[1:longest]::BIGINT[]) / 1e6 AS gap_to_s
FROM (
    SELECT variant, sent_ns, first_token_ns, last_token_ns, chunk_gap_us,
        min(sent_ns) OVER (PARTITION BY variant) AS begun_ns,
        list_position(chunk_gap_us, list_max(chunk_gap_us)) AS longest
    FROM measured_request WHERE sweep = 'pool' AND repeat = 1 AND error IS NULL)
ORDER BY variant DESC, place

-- name: little
-- Little's law on every cell: requests a second times the mean time in the server, by the client,
-- against the mean of the engine's own running and waiting requests, by its gauges at each look. And
-- the mean time alone (warm-up included) by the engine's own clock, against the client's.
-- uses: gauged
WITH client AS (
    SELECT c.cell_id, c.engine, c.sweep, c.in_flight,
        count(*) FILTER (phase = 'measured') * 1e9 / (max(c.ended_ns) - min(c.measured_ns)) AS rate,
        avg(r.ended_ns - r.sent_ns) FILTER (phase = 'measured') / 1e9 AS mean_s,
        avg(r.ended_ns - r.sent_ns) / 1e9 AS every_s
    FROM cell c JOIN request r USING (cell_id) WHERE r.error IS NULL GROUP BY ALL),
clock AS (
    SELECT cell_id, sum(gained) FILTER (name LIKE '%\_sum' ESCAPE '\')
        / sum(gained) FILTER (name LIKE '%\_count' ESCAPE '\') AS mean_s
    FROM (
        SELECT m.cell_id, m.name, m.labels,
            max(m.value) - coalesce(max(m.value) FILTER (m.t_ns = f.t_ns), 0) AS gained
        FROM engine_metric m JOIN (SELECT cell_id, min(t_ns) AS t_ns FROM scrape GROUP BY ALL) f
            USING (cell_id)
        WHERE m.name IN ('vllm:e2e_request_latency_seconds_sum',
            'vllm:e2e_request_latency_seconds_count', 'sglang:e2e_request_latency_seconds_sum',
            'sglang:e2e_request_latency_seconds_count') GROUP BY ALL)
    GROUP BY cell_id)
SELECT c.sweep, c.engine, count(*) AS cells, min(rate * c.mean_s) AS least,
    max(rate * c.mean_s) AS most, 100 * max(abs(rate * c.mean_s / c.in_flight - 1)) AS asked_percent,
    min(looks) AS looks, 100 * median(had / (rate * c.mean_s) - 1) AS middle_percent,
    100 * arg_max(had / (rate * c.mean_s) - 1, abs(had / (rate * c.mean_s) - 1)) AS worst_percent,
    100 * median(k.mean_s / every_s - 1) AS time_percent,
    100 * arg_max(k.mean_s / every_s - 1, abs(k.mean_s / every_s - 1)) AS worst_time_percent
FROM client c JOIN gauged e USING (cell_id) LEFT JOIN clock k ON k.cell_id = c.cell_id
GROUP BY ALL ORDER BY c.engine DESC, c.sweep

-- name: little_worst
-- The cell in which the engine's gauges and the client differ most.
-- uses: gauged
WITH client AS (
    SELECT c.cell_id, c.variant, c.sweep, c.repeat, c.rate_per_s,
        (max(c.ended_ns) - min(c.measured_ns)) / 1e9 AS measured_s,
        count(*) * avg(r.ended_ns - r.sent_ns) / (max(c.ended_ns) - min(c.measured_ns)) AS product
    FROM cell c JOIN request r USING (cell_id)
    WHERE r.phase = 'measured' AND r.error IS NULL GROUP BY ALL)
SELECT variant, sweep, repeat, measured_s, looks, product, had, 100 * (had / product - 1) AS percent
FROM client JOIN gauged USING (cell_id) ORDER BY abs(had / product - 1) DESC LIMIT 1

-- name: cost_parts
-- The spreadsheet: what the measured phases of the closed loop cost at the declared price, and what a
-- million tokens cost, all of them and those of requests that met the objective.
-- uses: judged
WITH tokens AS (
    SELECT engine, in_flight, cell_id, sum(output_tokens)::BIGINT AS tokens,
        coalesce(sum(output_tokens) FILTER (met), 0)::BIGINT AS good_tokens
    FROM judged WHERE sweep = 'closed' AND verdict = 'VALID' AND error IS NULL GROUP BY ALL),
level AS (
    SELECT t.engine, t.in_flight, sum(t.tokens)::BIGINT AS tokens,
        sum(t.good_tokens)::BIGINT AS good_tokens, sum(o.measured_s) AS measured_s,
        greatest(coalesce(any_value(len(r.cores)), 1), 1) AS units
    FROM tokens t JOIN outcome o USING (cell_id) JOIN cell c USING (cell_id)
    JOIN engine_run r ON r.run_id = c.run_id GROUP BY ALL)
SELECT engine, in_flight, usd_per_hour, units, measured_s, usd_per_hour * units / 3600 * measured_s
        AS usd, tokens, good_tokens, 100.0 * good_tokens / tokens AS good_percent,
    1e6 * usd_per_hour * units / 3600 * measured_s / tokens AS usd_per_million,
    1e6 * usd_per_hour * units / 3600 * measured_s / nullif(good_tokens, 0) AS usd_per_million_good,
    in_flight = arg_min(in_flight, 1e6 * measured_s / nullif(good_tokens, 0)) OVER (
        PARTITION BY engine) AS cheapest_good,
    in_flight = arg_min(in_flight, measured_s / tokens) OVER (PARTITION BY engine) AS cheapest
FROM level, declared ORDER BY engine DESC, in_flight

-- name: model_fit
-- Of the small models: a and b of the closed loop.
-- uses: line
SELECT engine, a_s, b_s FROM line ORDER BY engine DESC

-- name: open_fit
-- vLLM's, and the capacity, of which the offered rates are shares.
-- uses: line
SELECT a_s, b_s, capacity_per_s FROM line WHERE engine = 'vllm'

-- name: cost_fit
-- The same, with the share of the requests that met the objective at each level.
-- uses: judged, line
SELECT engine, in_flight, a_s, b_s, any_value(asked_output_tokens) AS output_tokens,
    avg(met::INT) AS met_frac
FROM judged JOIN line USING (engine) WHERE sweep = 'closed' AND verdict = 'VALID'
GROUP BY engine, in_flight, a_s, b_s ORDER BY engine DESC, in_flight

-- name: closed_points
-- The closed loop against N / (a + b N), fitted on the first and the last level; and the cost of a
-- million output tokens at the declared price, of one unit.
-- uses: declared
WITH level AS (
    SELECT engine, in_flight, avg(requests_per_s) AS requests_per_s,
        avg(1e6 / output_tok_per_s) AS s_per_million
    FROM outcome WHERE sweep = 'closed' AND verdict = 'VALID' GROUP BY ALL)
SELECT engine, in_flight, usd_per_hour, if(in_flight IN (min(in_flight) OVER e, max(in_flight) OVER e),
        'fit', 'check') AS part,
    requests_per_s, in_flight / requests_per_s AS each_s,
    usd_per_hour / 3600 * s_per_million AS usd_million
FROM level, declared WINDOW e AS (PARTITION BY engine) ORDER BY engine DESC, in_flight

-- name: open_points
-- vLLM's open loop against (a + b) / (1 - rate b): mean over the VALID cells of a rate.
-- uses: line
SELECT round(100 * o.rate_per_s / capacity_per_s) AS capacity_percent, 'check' AS part,
    avg(o.mean_s) AS each_s
FROM (
    SELECT c.engine, c.cell_id, c.rate_per_s, avg(r.last_token_ns - r.scheduled_ns) / 1e9 AS mean_s
    FROM cell c JOIN request r USING (cell_id)
    WHERE c.sweep = 'open' AND c.verdict = 'VALID' AND r.phase = 'measured' AND c.engine = 'vllm'
    GROUP BY ALL) o
JOIN line USING (engine)
GROUP BY ALL HAVING capacity_percent < 100 ORDER BY capacity_percent
