-- name: ttft_by_length
-- TTFT p50 by prompt length: mean over repeats of the median within a repeat, 95 % t interval.
SELECT engine, prompt_tokens, p50_ms, low_ms, high_ms, repeats, requests
FROM ttft_p50 WHERE sweep = 'length'
ORDER BY engine, prompt_tokens

-- name: ttft_fit
-- Least squares of TTFT on prompt length over all requests: ms = intercept + slope * tokens.
SELECT engine,
    regr_slope(from_sent_ms, prompt_tokens) AS slope_ms_per_token,
    regr_intercept(from_sent_ms, prompt_tokens) AS intercept_ms,
    regr_r2(from_sent_ms, prompt_tokens) AS r2,
    count(*) AS requests
FROM ttft WHERE sweep = 'length'
GROUP BY engine ORDER BY engine

-- name: ttft_residual
-- How far the p50 at the longest prompt lies from the line fitted on the prompts of at most 512 tokens.
WITH fit AS (
    SELECT engine, regr_slope(from_sent_ms, prompt_tokens) AS slope,
        regr_intercept(from_sent_ms, prompt_tokens) AS intercept
    FROM ttft WHERE sweep = 'length' AND prompt_tokens <= 512 GROUP BY engine)
SELECT p.engine, p.prompt_tokens, p.p50_ms,
    f.intercept + f.slope * p.prompt_tokens AS line_ms,
    100 * (p.p50_ms / (f.intercept + f.slope * p.prompt_tokens) - 1) AS above_line_percent
FROM ttft_p50 p JOIN fit f USING (engine)
WHERE p.sweep = 'length' AND p.prompt_tokens = 1024
ORDER BY engine

-- name: tpot_by_length
-- Time per output token, p50, by prompt length, with its interval over repeats.
SELECT engine, prompt_tokens, p50_ms, low_ms, high_ms
FROM level_p50 WHERE sweep = 'length' AND metric = 'tpot'
ORDER BY engine, prompt_tokens

-- name: tpot_growth
-- Time per output token at the shortest and at the longest prompt, p50.
SELECT engine, max(p50_ms) FILTER (prompt_tokens = 32) AS short_ms,
    max(p50_ms) FILTER (prompt_tokens = 1024) AS long_ms,
    100 * (max(p50_ms) FILTER (prompt_tokens = 1024) / max(p50_ms) FILTER (prompt_tokens = 32) - 1)
        AS growth_percent
FROM level_p50 WHERE sweep = 'length' AND metric = 'tpot'
GROUP BY engine ORDER BY engine

-- name: itl_by_position
-- ITL against the position of the token, in steps of ten, over the traced requests of all repeats.
SELECT engine, 10 * (token_index // 10) AS position_tokens,
    quantile_cont(itl_ms, 0.5) AS p50_ms,
    quantile_cont(itl_ms, 0.1) AS p10_ms,
    quantile_cont(itl_ms, 0.9) AS p90_ms
FROM itl WHERE sweep = 'trace'
GROUP BY ALL ORDER BY engine, position_tokens

-- name: itl_growth
-- ITL p50 of the first and the last fifty gaps of the traced requests.
WITH half AS (
    SELECT engine, itl_ms, token_index <= 51 AS early,
        token_index > max(token_index) OVER (PARTITION BY engine) - 50 AS late
    FROM itl WHERE sweep = 'trace')
SELECT engine,
    quantile_cont(itl_ms, 0.5) FILTER (early) AS first_ms,
    quantile_cont(itl_ms, 0.5) FILTER (late) AS last_ms,
    100 * (quantile_cont(itl_ms, 0.5) FILTER (late) / quantile_cont(itl_ms, 0.5) FILTER (early) - 1)
        AS growth_percent
FROM half GROUP BY engine ORDER BY engine

-- name: request_timeline
-- The traced request of the first repeat: the engine's own account of its queue and prefill (from
-- its histograms; NULL where it has none), and the arrival of every token, ms since it was sent.
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
    list_transform(m.chunk_offset_ns, lambda x: round(x / 1e6, 1)) AS token_ms
FROM measured_request m LEFT JOIN last_rise r USING (cell_id)
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

-- name: busy
-- Which side waits: CPU time of the engine's processes and of the load process for each second of
-- the measured phases.
WITH engine AS (
    SELECT cell_id,
        (arg_max(engine_cpu_s, t_ns) - arg_min(engine_cpu_s, t_ns)) AS cpu_s,
        (max(t_ns) - min(t_ns)) / 1e9 AS seconds
    FROM host_sample JOIN cell c USING (cell_id)
    WHERE t_ns BETWEEN c.measured_ns AND c.ended_ns GROUP BY cell_id)
SELECT c.engine, 100 * sum(e.cpu_s) / sum(e.seconds) AS engine_percent,
    100 * sum(CAST(c.client ->> 'cpu_s' AS DOUBLE)) / sum((c.ended_ns - c.measured_ns) / 1e9)
        AS load_process_percent
FROM engine e JOIN cell c USING (cell_id)
WHERE c.verdict = 'VALID' AND c.sweep = 'length'
GROUP BY c.engine ORDER BY c.engine

-- name: kv_use
-- The engine's own KV cache gauge during the traced request of the first repeat, tokens.
SELECT c.engine, (g.t_ns - m.sent_ns) / 1e9 AS seconds, max(g.value) AS kv_used_tokens
FROM engine_gauge g JOIN cell c USING (cell_id) JOIN measured_request m USING (cell_id)
WHERE g.gauge = 'kv_used_tokens' AND c.sweep = 'trace' AND c.repeat = 1
    AND g.t_ns BETWEEN m.sent_ns - 200000000 AND m.ended_ns + 1000000000
GROUP BY ALL ORDER BY c.engine, seconds

-- name: kv_need
-- Tokens whose keys and values the traced request of the first repeat needs: prompt and answer.
SELECT engine, (first_token_ns - sent_ns) / 1e9 AS first_token_s,
    (last_token_ns - sent_ns) / 1e9 AS last_token_s,
    server_prompt_tokens AS prompt_tokens, server_prompt_tokens + output_tokens AS all_tokens
FROM measured_request
WHERE sweep = 'trace' AND repeat = 1 AND error IS NULL AND engine IN ('vllm', 'sglang')
ORDER BY engine

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
SELECT o.engine, count(*) AS cells,
    sum(o.measured_s) AS seconds, sum(o.measured_s) / 3600 AS core_hours,
    sum(o.requests * o.prompt_tokens) AS prompt_tokens, sum(o.output_tokens) AS output_tokens,
    sum(o.measured_s) / 3600 / sum(o.output_tokens) * 1e6 AS core_hours_per_million,
    sum(o.measured_s) / 3600 / sum(o.output_tokens) * 1e6 * any_value(d.usd_per_hour)
        AS usd_per_million
FROM outcome o, declared d WHERE o.sweep = 'length' AND o.verdict = 'VALID'
GROUP BY o.engine ORDER BY o.engine

-- name: overhead
-- Time that no answer was measured in: starting an engine, and warm-up requests.
SELECT r.engine, count(DISTINCT r.run_id) AS starts,
    avg((r.ready_ns - r.started_ns) / 1e9) AS ready_s,
    sum(w.warmup_s) AS warmup_s
FROM engine_run r JOIN (
    SELECT run_id, sum((measured_ns - started_ns) / 1e9) AS warmup_s FROM cell GROUP BY run_id
) w USING (run_id)
GROUP BY r.engine ORDER BY r.engine

-- name: equal_work
-- The proof of equal work: prompts, and tokens in and out, of the requests that enter the figures.
SELECT engine, count(*) AS requests, count(DISTINCT prompt_sha256) AS prompts,
    sum(server_prompt_tokens)::BIGINT AS tokens_in, sum(output_tokens)::BIGINT AS tokens_out,
    coalesce(sum(cached_tokens), 0)::BIGINT AS cached_tokens,
    md5(string_agg(DISTINCT prompt_sha256, '' ORDER BY prompt_sha256))[1:12] AS prompts_hash
FROM measured_request WHERE error IS NULL
GROUP BY engine ORDER BY engine

-- name: verdicts
-- Cells and verdicts, and what each engine answered when it was asked for the capital of France.
SELECT c.engine, r.version, count(*) AS cells,
    count(*) FILTER (c.verdict = 'VALID') AS valid, any_value(r.probe_answer) AS answer
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
