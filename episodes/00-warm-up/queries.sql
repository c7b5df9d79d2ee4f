-- name: ttft_by_length
-- TTFT p50 by prompt length: mean over repeats of the median within a repeat, 95 % t interval.
SELECT engine, prompt_tokens, p50_ms, low_ms, high_ms, repeats, requests
FROM ttft_p50 WHERE sweep = 'length'
ORDER BY engine, prompt_tokens

-- name: ttft_fit
-- Least squares of TTFT on prompt length, prompts of at most 512 tokens: a line in each repeat, the
-- mean over repeats and its interval. ms = intercept + slope * tokens.
WITH line AS (
    SELECT engine, repeat, regr_slope(from_sent_ms, prompt_tokens) AS slope,
        regr_intercept(from_sent_ms, prompt_tokens) AS intercept,
        regr_r2(from_sent_ms, prompt_tokens) AS r2, count(*) AS n
    FROM ttft WHERE sweep = 'length' AND prompt_tokens <= 512 GROUP BY ALL)
SELECT engine, avg(slope) AS slope_ms_per_token,
    low95(slope) AS low_ms, high95(slope) AS high_ms,
    avg(intercept) AS intercept_ms, avg(r2) AS r2, sum(n)::BIGINT AS requests
FROM line GROUP BY engine ORDER BY engine

-- name: ttft_residual
-- How far TTFT p50 at the longest prompt lies above the line through the shorter ones: in each
-- repeat, then mean and interval over repeats.
WITH one AS (
    SELECT engine, repeat, quantile_cont(from_sent_ms, 0.5) FILTER (prompt_tokens = 1024) AS p50,
        regr_intercept(from_sent_ms, prompt_tokens) FILTER (prompt_tokens <= 512)
            + 1024 * regr_slope(from_sent_ms, prompt_tokens) FILTER (prompt_tokens <= 512) AS line
    FROM ttft WHERE sweep = 'length' GROUP BY ALL),
gap AS (SELECT *, 100 * (p50 / line - 1) AS above FROM one WHERE p50 IS NOT NULL)
SELECT engine, avg(p50) AS p50_ms, avg(line) AS line_ms, avg(above) AS above_percent,
    low95(above) AS low_percent, high95(above) AS high_percent
FROM gap GROUP BY engine ORDER BY engine

-- name: tpot_by_length
-- Time per output token, p50, by prompt length, with its interval over repeats.
SELECT engine, prompt_tokens, p50_ms, low_ms, high_ms
FROM level_p50 WHERE sweep = 'length' AND metric = 'tpot'
ORDER BY engine, prompt_tokens

-- name: tpot_growth
-- Time per output token p50 at the shortest and at the longest prompt, and its growth: in each
-- repeat, then mean and interval over repeats.
WITH one AS (
    SELECT engine, repeat, quantile_cont(tpot_ms, 0.5) FILTER (prompt_tokens = 32) AS short,
        quantile_cont(tpot_ms, 0.5) FILTER (prompt_tokens = 1024) AS long
    FROM tpot WHERE sweep = 'length' GROUP BY ALL),
grown AS (
    SELECT *, 100 * (long / short - 1) AS growth FROM one
    WHERE short IS NOT NULL AND long IS NOT NULL)
SELECT engine, avg(short) AS short_ms, avg(long) AS long_ms, avg(growth) AS growth_percent,
    low95(growth) AS low_percent, high95(growth) AS high_percent
FROM grown GROUP BY engine ORDER BY engine

-- name: itl_by_position
-- ITL against the position of the token, in steps of ten, over the traced requests of all repeats.
SELECT engine, 10 * (token_index // 10) + 5 AS position_tokens,
    quantile_cont(itl_ms, 0.5) AS p50_ms,
    quantile_cont(itl_ms, 0.1) AS p10_ms,
    quantile_cont(itl_ms, 0.9) AS p90_ms
FROM itl WHERE sweep = 'trace'
GROUP BY ALL ORDER BY engine, position_tokens

-- name: itl_growth
-- ITL p50 of the first and of the last fifty gaps of the traced request: in each repeat, then mean
-- and interval over repeats.
WITH one AS (
    SELECT engine, repeat, quantile_cont(itl_ms, 0.5) FILTER (token_index <= 51) AS early,
        quantile_cont(itl_ms, 0.5) FILTER (token_index > last_index - 50) AS late
    FROM (
        SELECT *, max(token_index) OVER (PARTITION BY engine, repeat) AS last_index
        FROM itl WHERE sweep = 'trace')
    GROUP BY ALL),
grown AS (SELECT *, 100 * (late / early - 1) AS growth FROM one)
SELECT engine, avg(early) AS first_ms, avg(late) AS last_ms, avg(growth) AS growth_percent,
    low95(growth) AS low_percent, high95(growth) AS high_percent
FROM grown GROUP BY engine ORDER BY engine

-- name: request_timeline
-- The traced request of the first repeat: the engine's own account of its queue and prefill (from
-- its histograms; NULL where it has none), and the arrival of every token, seconds since it was sent.
WITH own AS (
    SELECT cell_id, stage, list_sort(list_distinct(list(value))) AS sums
    FROM (
        SELECT cell_id, value, CASE
            WHEN name IN ('vllm:request_queue_time_seconds_sum', 'sglang:queue_time_seconds_sum')
                THEN 'queue'
            WHEN name = 'vllm:request_prefill_time_seconds_sum'
                OR (name = 'sglang:per_stage_req_latency_seconds_sum'
                    AND contains(labels, 'stage=prefill_forward')) THEN 'prefill' END AS stage
        FROM engine_metric)
    WHERE stage IS NOT NULL GROUP BY ALL),
-- The cell served a warm-up and one measured request: the last rise of a sum is the measured one's.
last_rise AS (
    SELECT cell_id, stage, 1000 * (sums[-1] - coalesce(sums[-2], 0)) AS ms FROM own)
SELECT m.engine, m.prompt_tokens AS prompt_tokens, m.output_tokens AS output_tokens,
    (m.first_token_ns - m.sent_ns) / 1e6 AS ttft_ms,
    (m.last_token_ns - m.sent_ns) / 1e6 AS e2e_ms,
    max(r.ms) FILTER (r.stage = 'queue') AS queue_ms,
    max(r.ms) FILTER (r.stage = 'prefill') AS prefill_ms,
    any_value(t.token_s) AS token_s
FROM measured_request m
JOIN (
    SELECT cell_id, request_id,
        list(round((arrival_ns - sent_ns) / 1e9, 3) ORDER BY chunk_index) AS token_s
    FROM chunk JOIN measured_request USING (cell_id, request_id) GROUP BY ALL
) t USING (cell_id, request_id)
LEFT JOIN last_rise r USING (cell_id)
WHERE m.sweep = 'trace' AND m.repeat = 1 AND m.error IS NULL
GROUP BY ALL ORDER BY m.engine

-- name: engine_share
-- TTFT as the client saw it, and the part of it that the engine's own histograms call queue and
-- prefill: ms a request, means over all requests of a length, warm-up included in both.
WITH client AS (
    SELECT c.engine, c.prompt_tokens, avg((r.first_token_ns - r.sent_ns) / 1e6) AS ttft_ms
    FROM request r JOIN cell c USING (cell_id)
    WHERE c.sweep = 'length' AND c.verdict = 'VALID' AND r.error IS NULL
    GROUP BY ALL),
stage AS (
    SELECT c.engine, c.prompt_tokens, s.stage, 1000 * sum(s.total_s) / sum(s.requests) AS ms
    FROM engine_stage s JOIN cell c USING (cell_id)
    WHERE c.sweep = 'length' AND c.verdict = 'VALID' AND s.stage IN ('queue', 'prefill')
    GROUP BY ALL)
SELECT engine, prompt_tokens, ttft_ms, engine_ms, ttft_ms - engine_ms AS around_ms
FROM client JOIN (
    SELECT engine, prompt_tokens, sum(ms) AS engine_ms FROM stage GROUP BY ALL
) USING (engine, prompt_tokens)
ORDER BY engine, prompt_tokens

-- name: gauge_cost
-- What it costs to look: mean gap between tokens with and without a read of /metrics in it.
WITH gap AS (
    SELECT c.engine, c.sweep, c.cell_id, lag(k.arrival_ns) OVER w AS a, k.arrival_ns AS b
    FROM chunk k JOIN cell c USING (cell_id)
    WINDOW w AS (PARTITION BY k.cell_id, k.request_id ORDER BY k.chunk_index)),
hit AS (
    SELECT g.engine, g.sweep, (g.b - g.a) / 1e6 AS ms, count(s.t_ns) > 0 AS looked
    FROM gap g LEFT JOIN scrape s
        ON s.cell_id = g.cell_id AND s.t_ns > g.a AND s.t_ns - s.took_ns < g.b
    WHERE g.a IS NOT NULL
    GROUP BY g.engine, g.sweep, g.cell_id, g.a, g.b)
SELECT engine, sweep, avg(ms) FILTER (looked) AS with_read_ms,
    avg(ms) FILTER (NOT looked) AS without_read_ms, 100 * avg(looked::INT) AS gaps_with_read_percent
FROM hit GROUP BY ALL ORDER BY sweep, engine

-- name: busy
-- CPU time of the engine's processes and of the load process for each second of the measured phases.
-- Beside it the engine's before the first request of a cell was sent, when nothing was in flight.
WITH spent AS (
    SELECT h.cell_id, h.t_ns, (h.t_ns - lag(h.t_ns) OVER w) / 1e9 AS seconds,
        h.engine_cpu_s - lag(h.engine_cpu_s) OVER w AS cpu_s
    FROM host_sample h WINDOW w AS (PARTITION BY h.cell_id ORDER BY h.t_ns)),
first_sent AS (SELECT cell_id, min(sent_ns) AS sent_ns FROM request GROUP BY cell_id)
SELECT c.engine,
    100 * sum(s.cpu_s) FILTER (s.t_ns > c.measured_ns)
        / sum(s.seconds) FILTER (s.t_ns > c.measured_ns) AS engine_percent,
    100 * sum(s.cpu_s) FILTER (s.t_ns < f.sent_ns)
        / sum(s.seconds) FILTER (s.t_ns < f.sent_ns) AS idle_percent,
    100 * avg(CAST(c.client ->> 'cpu_frac' AS DOUBLE)) AS load_process_percent
FROM spent s JOIN cell c USING (cell_id) JOIN first_sent f USING (cell_id)
WHERE c.verdict = 'VALID' AND c.sweep = 'length' AND s.seconds IS NOT NULL
GROUP BY c.engine ORDER BY c.engine

-- name: kv_use
-- The engine's own KV cache gauge during the traced request of the first repeat, tokens.
SELECT c.engine, (g.t_ns - m.sent_ns) / 1e9 AS seconds, max(g.value) AS kv_used_tokens
FROM engine_gauge g JOIN cell c USING (cell_id) JOIN measured_request m USING (cell_id)
WHERE g.gauge = 'kv_used_tokens' AND c.sweep = 'trace' AND c.repeat = 1
    AND g.t_ns BETWEEN m.sent_ns AND m.ended_ns + 1000000000
GROUP BY ALL ORDER BY c.engine, seconds

-- name: kv_need
-- Tokens in the cache after each step of the same request: the prompt and the answer so far, less
-- the last token, which has not been fed back yet. Every eighth step.
SELECT m.engine, (k.arrival_ns - m.sent_ns) / 1e9 AS seconds,
    m.server_prompt_tokens + k.chunk_index - 1 AS tokens
FROM chunk k JOIN measured_request m USING (cell_id, request_id)
WHERE m.sweep = 'trace' AND m.repeat = 1 AND m.engine IN ('vllm', 'sglang')
    AND (k.chunk_index % 8 = 1 OR k.chunk_index = len(m.chunk_shared))
ORDER BY m.engine, k.chunk_index

-- name: model
-- What the model's own configuration says. Parameters: two bytes each in the weight file.
SELECT model_id,
    CAST(config ->> 'num_hidden_layers' AS INTEGER) AS layers,
    CAST(config ->> 'num_key_value_heads' AS INTEGER) AS kv_heads,
    CAST(config ->> 'num_attention_heads' AS INTEGER) AS heads,
    CAST(config ->> 'hidden_size' AS INTEGER)
        / CAST(config ->> 'num_attention_heads' AS INTEGER) AS head_size,
    CAST(config ->> 'hidden_size' AS INTEGER) AS hidden_size,
    weight_bytes / 2 AS parameters,
    CAST(config ->> 'vocab_size' AS INTEGER) * CAST(config ->> 'hidden_size' AS INTEGER)
        AS table_parameters
FROM model

-- name: kv_pool
-- The pool that each engine reports in its log, and what one token of it takes: the pool was given
-- one GiB on vLLM; SGLang was given the number of tokens.
SELECT engine, any_value(kv_pool_tokens) AS pool_tokens,
    CASE engine WHEN 'vllm' THEN 1073741824 / any_value(kv_pool_tokens) END AS bytes_per_token
FROM engine_run WHERE kv_pool_tokens IS NOT NULL
GROUP BY engine ORDER BY engine

-- name: pool_lines
-- The lines of the engines' logs that say it.
SELECT r.engine, any_value(l.line) AS line
FROM log_line l JOIN engine_run r USING (run_id)
WHERE l.line LIKE '%KV cache size%' OR l.line LIKE '%KV Cache is allocated%'
GROUP BY r.engine ORDER BY r.engine

-- name: cost
-- What the sweep over lengths cost on the engine's one core, measured phases alone. The price is
-- the one declared for the tier in the experiment that was recorded.
WITH declared AS (
    SELECT CAST(regexp_extract(split_part(experiment_toml, '[tier.' || tier || ']', 2),
        'usd_per_hour = ([0-9.]+)', 1) AS DOUBLE) AS usd_per_hour
    FROM recording)
SELECT o.engine, sum(o.measured_s) AS seconds, sum(o.measured_s) / 3600 AS core_hours,
    sum(o.requests * o.prompt_tokens)::BIGINT AS prompt_tokens,
    sum(o.output_tokens)::BIGINT AS output_tokens,
    sum(o.requests * o.prompt_tokens) / sum(o.output_tokens) AS prompt_per_output,
    sum(o.measured_s) / 3600 / sum(o.output_tokens) * 1e6 AS core_hours_per_million,
    sum(o.measured_s) / 3600 / sum(o.output_tokens) * 1e6 * any_value(d.usd_per_hour)
        AS usd_per_million
FROM outcome o, declared d WHERE o.sweep = 'length' AND o.verdict = 'VALID'
GROUP BY o.engine ORDER BY o.engine

-- name: cost_apart
-- The same price for a million tokens, prompt and output apart: a prompt token costs the slope of
-- TTFT, an output token TPOT p50 at the shortest prompt. ms / 3.6 = core-hours a million.
WITH declared AS (
    SELECT CAST(regexp_extract(split_part(experiment_toml, '[tier.' || tier || ']', 2),
        'usd_per_hour = ([0-9.]+)', 1) AS DOUBLE) AS usd_per_hour
    FROM recording),
slope AS (
    SELECT engine, avg(slope) AS prompt_ms FROM (
        SELECT engine, repeat, regr_slope(from_sent_ms, prompt_tokens) AS slope
        FROM ttft WHERE sweep = 'length' AND prompt_tokens <= 512 GROUP BY ALL)
    GROUP BY engine)
SELECT engine, prompt_ms, p.p50_ms AS output_ms, p.p50_ms / prompt_ms AS times,
    prompt_ms / 3.6 * usd_per_hour AS prompt_usd, p.p50_ms / 3.6 * usd_per_hour AS output_usd
FROM slope JOIN level_p50 p USING (engine), declared
WHERE p.sweep = 'length' AND p.metric = 'tpot' AND p.prompt_tokens = 32
ORDER BY engine

-- name: overhead
-- Time that no answer was measured in: starting an engine, and the warm-up of the sweep over lengths.
SELECT r.engine, count(DISTINCT r.run_id) AS starts,
    avg((r.ready_ns - r.started_ns) / 1e9) AS ready_s, sum(w.warmup_s) AS warmup_s
FROM engine_run r JOIN (
    SELECT run_id, sum((measured_ns - started_ns) / 1e9) AS warmup_s
    FROM cell WHERE sweep = 'length' GROUP BY run_id
) w USING (run_id)
GROUP BY r.engine ORDER BY r.engine

-- name: spread
-- How unequal equal requests are: slowest over fastest of a cell in TPOT, worst and median cell.
SELECT max(ratio) AS worst, quantile_cont(ratio, 0.5) AS middle FROM (
    SELECT max(tpot_ms) / min(tpot_ms) AS ratio
    FROM tpot WHERE sweep = 'length' GROUP BY engine, prompt_tokens, repeat)

-- name: answer
-- Where the time of the traced request went, mean over repeats.
SELECT t.engine, avg(e.from_sent_ms) / 1000 AS all_s, avg(t.from_sent_ms) / 1000 AS prompt_s,
    avg(e.from_sent_ms - t.from_sent_ms) / 1000 AS output_s,
    100 * avg(t.from_sent_ms) / avg(e.from_sent_ms) AS prompt_percent
FROM ttft t JOIN e2e e USING (cell_id, request_id)
WHERE t.sweep = 'trace' GROUP BY t.engine ORDER BY t.engine

-- name: equal_work
-- The proof of equal work, over the requests that enter the figures: prompts, tokens in and out, and
-- the text of the answers. Equal hashes are equal texts. NULL: the engine does not report it.
SELECT engine, count(*) AS requests,
    sum(server_prompt_tokens)::BIGINT AS tokens_in, sum(output_tokens)::BIGINT AS tokens_out,
    sum(cached_tokens)::BIGINT AS cached_tokens,
    md5(string_agg(prompt_hash::VARCHAR, '' ORDER BY prompt_hash))[1:8] AS prompts_hash,
    md5(string_agg(md5(output_text), '' ORDER BY prompt_hash))[1:8] AS answers_hash
FROM measured_request WHERE error IS NULL
GROUP BY engine ORDER BY engine

-- name: equal_work_holds
-- Whether prompts, token counts and answers are the same on all engines.
SELECT count(DISTINCT prompts) = 1 AS prompts_equal, count(DISTINCT answers) = 1 AS answers_equal
FROM (
    SELECT engine,
        md5(string_agg(prompt_hash || ':' || server_prompt_tokens || ':' || output_tokens, ''
            ORDER BY prompt_hash)) AS prompts,
        md5(string_agg(md5(output_text), '' ORDER BY prompt_hash)) AS answers
    FROM measured_request WHERE error IS NULL GROUP BY engine)

-- name: answers_shared
-- Of the prompts that every engine answered, the share whose answers are the same text on all.
SELECT count(*) AS prompts, 100 * avg((texts = 1)::INT) AS same_percent FROM (
    SELECT prompt_hash, count(DISTINCT output_text) AS texts, count(DISTINCT engine) AS engines
    FROM measured_request WHERE error IS NULL GROUP BY prompt_hash)
WHERE engines = (SELECT count(DISTINCT engine) FROM measured_request)

-- name: verdicts
-- Cells and verdicts, and what each engine answered when it was asked for the capital of France (the
-- first line: the length of the answer is fixed, so the model runs on past its end).
SELECT c.engine, r.version, count(*) AS cells,
    count(*) FILTER (c.verdict = 'VALID') AS valid,
    split_part(any_value(r.probe_answer), chr(10), 1) AS answer
FROM cell c JOIN engine_run r USING (run_id)
GROUP BY ALL ORDER BY c.engine

-- name: client_health
-- The instrument: schedule lag, user-space lag and shared reads of the load process, worst cell.
SELECT engine, max(CAST(client ->> 'schedule_lag_p99_ns' AS BIGINT)) / 1e6 AS schedule_lag_ms,
    max(CAST(client ->> 'user_lag_p99_ns' AS BIGINT)) / 1e6 AS user_lag_ms,
    sum(CAST(client ->> 'shared_chunks' AS BIGINT)) AS shared_chunks,
    sum(CAST(client ->> 'chunks' AS BIGINT)) AS chunks,
    sum(CAST(client ->> 'unstamped_reads' AS BIGINT)) AS unstamped_reads
FROM cell GROUP BY engine ORDER BY engine

-- name: try_fit
-- Constants of the small model. Those of the machine rest on prompts of at most 512 tokens: least
-- squares of TTFT p50 on the work of the prompt, and the mean of TPOT p50 without what the cache
-- adds by its bytes. attention and cache: from the model's configuration, for each token of prompt.
WITH of_model AS (
    SELECT layers * hidden / (parameters - vocabulary * hidden) AS attention_per_token,
        2 * layers * kv_heads * (hidden / heads) * 4 / (4 * parameters) AS cache_per_token
    FROM (
        SELECT CAST(config ->> 'num_hidden_layers' AS INTEGER) AS layers,
            CAST(config ->> 'num_key_value_heads' AS INTEGER) AS kv_heads,
            CAST(config ->> 'num_attention_heads' AS INTEGER) AS heads,
            CAST(config ->> 'hidden_size' AS INTEGER) AS hidden,
            CAST(config ->> 'vocab_size' AS INTEGER) AS vocabulary, weight_bytes / 2 AS parameters
        FROM model)),
point AS (
    SELECT engine, max(p50_ms) FILTER (metric = 'ttft') AS ttft_ms,
        prompt_tokens * (1 + any_value(attention_per_token) * prompt_tokens) AS work,
        max(p50_ms) FILTER (metric = 'tpot')
            / (1 + any_value(cache_per_token) * (prompt_tokens + 8)) AS step_ms
    FROM level_p50, of_model WHERE sweep = 'length' AND prompt_tokens <= 512
    GROUP BY engine, prompt_tokens)
SELECT engine, regr_intercept(ttft_ms, work) AS base_ms, regr_slope(ttft_ms, work) AS per_token_ms,
    avg(step_ms) AS step_ms, any_value(attention_per_token) AS attention_per_token,
    any_value(cache_per_token) AS cache_per_token
FROM point, of_model GROUP BY engine ORDER BY engine

-- name: try_points
-- What the small model is held against: medians of TTFT and of the whole answer, at each length and
-- of the trace. part: prompts of at most 512 tokens fitted its constants.
SELECT p.engine, p.prompt_tokens, any_value(c.output_tokens) AS output_tokens,
    any_value(p.p50_ms) FILTER (metric = 'ttft') AS ttft_ms,
    any_value(p.p50_ms) FILTER (metric = 'e2e') / 1000 AS answer_s,
    CASE WHEN p.prompt_tokens <= 512 THEN 'fit' ELSE 'check' END AS part
FROM level_p50 p JOIN (
    SELECT DISTINCT engine, sweep, output_tokens FROM cell) c USING (engine, sweep)
GROUP BY p.engine, p.sweep, p.prompt_tokens ORDER BY ALL
