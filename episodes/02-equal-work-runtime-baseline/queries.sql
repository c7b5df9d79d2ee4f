-- name: equal_work
-- The proof of equal work, over the requests that enter the figures: prompts, tokens in and out, and
-- the text of the answers. Equal hashes are equal texts. NULL: the engine does not report it.
SELECT sweep, variant, count(*) AS requests,
    sum(server_prompt_tokens)::BIGINT AS tokens_in, sum(output_tokens)::BIGINT AS tokens_out,
    sum(cached_tokens)::BIGINT AS cached_tokens,
    md5(string_agg(prompt_hash::VARCHAR, ' ' ORDER BY prompt_hash))[1:8] AS prompts_hash,
    md5(string_agg(md5(output_text), '' ORDER BY prompt_hash, cell_id, request_id))[1:8]
        AS answers_hash
FROM measured_request WHERE error IS NULL AND sweep IN ('speed', 'chat')
GROUP BY ALL ORDER BY sweep DESC, variant

-- name: equal_work_holds
-- Whether prompts and token counts are the same for all variants, in each level and repeat of the
-- comparison that is VALID for all of them.
WITH level AS (
    SELECT sweep, repeat, in_flight FROM cell WHERE sweep IN ('speed', 'chat')
    GROUP BY ALL HAVING bool_and(verdict = 'VALID')),
work AS (
    SELECT sweep, repeat, in_flight, variant, md5(string_agg(concat_ws(':', prompt_hash,
        coalesce(server_prompt_tokens, 0), coalesce(output_tokens, 0)), ' '
        ORDER BY prompt_hash, request_id)) AS done
    FROM measured_request JOIN level USING (sweep, repeat, in_flight) GROUP BY ALL)
SELECT coalesce(bool_and(kinds = 1), false) AS prompts_equal FROM (
    SELECT sweep, repeat, in_flight, count(DISTINCT done) AS kinds FROM work GROUP BY ALL)

-- name: verdicts
-- Cells and verdicts, and what each variant answered when it was asked for the capital of France
-- (the first line: the length of the answer is fixed, so the model runs on past its end).
SELECT c.variant, r.version, count(*) AS cells, count(*) FILTER (c.verdict = 'VALID') AS valid,
    string_agg(DISTINCT split_part(array_to_string(c.reasons, '; '), ':', 1), ', ') AS reasons,
    split_part(any_value(r.probe_answer), chr(10), 1) AS answer
FROM cell c JOIN engine_run r USING (run_id)
GROUP BY ALL ORDER BY c.variant

-- name: rejected
-- What the INVALID cells would have shown of the prompts alone: TPOT p50, and how many answers have
-- the text of vLLM in 32-bit floats.
SELECT c.variant, count(*) AS prompts, count(*) FILTER (r.output_text = v.output_text) AS same,
    median((r.last_token_ns - r.first_token_ns) / 1e6 / (r.output_tokens - 1)) AS tpot_ms
FROM request r JOIN cell c USING (cell_id) JOIN measured_request v USING (prompt_hash)
WHERE c.verdict <> 'VALID' AND c.sweep = 'alone' AND r.phase = 'measured' AND r.error IS NULL
    AND v.sweep = 'alone' AND v.variant = 'vllm'
GROUP BY c.variant ORDER BY c.variant

-- name: throughput
-- Output tokens a second alone and eight at a time, with the interval over repeats.
SELECT variant, in_flight, output_tok_per_s, tok_low_per_s, tok_high_per_s, repeats
FROM level_outcome WHERE sweep = 'speed'
ORDER BY variant, in_flight

-- name: latency
-- TTFT, TPOT and E2E p50 at both loads, with their intervals over repeats.
SELECT variant, in_flight,
    max(p50_ms) FILTER (metric = 'ttft') AS ttft_ms,
    max(low_ms) FILTER (metric = 'ttft') AS ttft_low_ms,
    max(high_ms) FILTER (metric = 'ttft') AS ttft_high_ms,
    max(p50_ms) FILTER (metric = 'tpot') AS tpot_ms,
    max(low_ms) FILTER (metric = 'tpot') AS tpot_low_ms,
    max(high_ms) FILTER (metric = 'tpot') AS tpot_high_ms,
    max(p50_ms) FILTER (metric = 'e2e') AS e2e_ms
FROM level_p50 WHERE sweep = 'speed'
GROUP BY ALL ORDER BY variant, in_flight

-- name: gain
-- Throughput with eight in flight over throughput alone: in each repeat, then mean and interval.
WITH one AS (
    SELECT variant, repeat, max(output_tok_per_s) FILTER (in_flight = 8)
        / max(output_tok_per_s) FILTER (in_flight = 1) AS gain
    FROM outcome WHERE sweep = 'speed' AND verdict = 'VALID' GROUP BY ALL)
SELECT variant, avg(gain) AS gain, low95(gain) AS low, high95(gain) AS high
FROM one GROUP BY variant ORDER BY variant

-- name: agreement
-- Of the prompts, how many each variant answered with the text that vLLM gave in 32-bit floats, by
-- sweep; one answer a prompt and load.
SELECT a.sweep, b.variant, count(*) AS prompts,
    count(*) FILTER (a.output_text = b.output_text) AS same,
    100 * avg((a.output_text = b.output_text)::INT) AS same_percent
FROM measured_request a JOIN measured_request b USING (sweep, repeat, in_flight, prompt_hash)
WHERE a.variant = 'vllm' AND b.variant <> 'vllm' AND a.error IS NULL AND b.error IS NULL
    AND a.sweep IN ('speed', 'alone', 'chat') AND NOT ends_with(b.variant, '-bf16')
GROUP BY ALL ORDER BY a.sweep DESC, b.variant

-- name: divergence
-- Where two answers to one prompt part, 16 prompts alone: the first token of the left one that
-- differs, and how much likelier it was there than the runner-up. ratio: both probabilities'.
WITH pair AS (
    SELECT a.variant AS left_one, b.variant AS right_one, a.prompt_hash, a.token_text,
        a.token_gap, list_filter(range(1, 1 + greatest(length(a.output_text), length(b.output_text))),
            lambda i: a.output_text[i] <> b.output_text[i])[1] AS place
    FROM measured_request a JOIN measured_request b USING (sweep, prompt_hash)
    WHERE a.sweep = 'alone' AND a.token_text IS NOT NULL
        AND (a.variant, b.variant) IN (
            ('vllm', 'transformers'), ('vllm', 'transformers-batching'), ('vllm', 'sglang'),
            ('sglang', 'sglang-bf16'), ('vllm', 'transformers-batching-bf16'))),
parted AS (
    SELECT *, list_filter(range(1, len(token_text) + 1),
        lambda k: length(array_to_string(token_text[1:k], '')) >= place)[1] AS token
    FROM pair WHERE place IS NOT NULL)
SELECT left_one, right_one, prompt_hash, token, token_gap[token] AS gap,
    exp(token_gap[token]) AS ratio
FROM parted ORDER BY left_one, right_one, token

-- name: divergence_summary
-- The same pairs in short: how many of the prompts part, at which token, and the gap there.
WITH pair AS (
    SELECT a.variant AS left_one, b.variant AS right_one, a.prompt_hash, a.token_text,
        a.token_gap, list_filter(range(1, 1 + greatest(length(a.output_text), length(b.output_text))),
            lambda i: a.output_text[i] <> b.output_text[i])[1] AS place
    FROM measured_request a JOIN measured_request b USING (sweep, prompt_hash)
    WHERE a.sweep = 'alone' AND a.token_text IS NOT NULL
        AND (a.variant, b.variant) IN (
            ('vllm', 'transformers'), ('vllm', 'transformers-batching'), ('vllm', 'sglang'),
            ('sglang', 'sglang-bf16'), ('vllm', 'transformers-batching-bf16'))),
parted AS (
    SELECT *, list_filter(range(1, len(token_text) + 1),
        lambda k: length(array_to_string(token_text[1:k], '')) >= place)[1] AS token
    FROM pair)
SELECT left_one, right_one, count(*) AS prompts, count(place) AS parted,
    min(token) AS first_token, max(token_gap[token]) AS widest_gap
FROM parted GROUP BY ALL ORDER BY left_one, right_one

-- name: company
-- Temperature zero, the same 16 prompts: how many answers keep their text when the request shares
-- its batch. Alone is the same variant with one request in flight.
SELECT b.variant, b.in_flight, count(*) AS prompts,
    count(*) FILTER (a.output_text = b.output_text) AS same,
    100 * avg((a.output_text = b.output_text)::INT) AS same_percent
FROM measured_request a JOIN measured_request b USING (variant, prompt_hash)
WHERE a.sweep = 'alone' AND b.sweep = 'batch' AND a.error IS NULL AND b.error IS NULL
GROUP BY ALL ORDER BY b.variant, b.in_flight

-- name: company_total
-- The same over all variants and batch sizes, by the bits of the number format that the engine was
-- told to compute in; without being told, it takes the weights' own sixteen.
SELECT CASE WHEN list_contains(r.argv, 'float32') THEN 32 ELSE 16 END AS bits,
    count(*) AS answers, count(*) FILTER (a.output_text <> b.output_text) AS parted
FROM measured_request a JOIN measured_request b USING (variant, prompt_hash)
    JOIN engine_run r ON r.run_id = b.run_id
WHERE a.sweep = 'alone' AND b.sweep = 'batch' AND a.error IS NULL AND b.error IS NULL
GROUP BY ALL ORDER BY bits

-- part: parted
-- Where an answer in company parts from the same variant's answer alone: the token, and how much
-- likelier it was than the runner-up. By vLLM's account of the prompt alone where its answer is the
-- same up to there, else by the variant's own; NULL where there is neither.
WITH pair AS (
    SELECT b.variant, b.in_flight, prompt_hash, a.output_text AS alone, a.token_text, a.token_gap,
        v.output_text AS of_vllm, v.token_text AS vllm_tokens, v.token_gap AS vllm_gaps,
        list_filter(range(1, 1 + greatest(length(a.output_text), length(b.output_text))),
            lambda i: a.output_text[i] <> b.output_text[i])[1] AS place
    FROM measured_request a JOIN measured_request b USING (variant, prompt_hash)
        LEFT JOIN measured_request v
            ON v.prompt_hash = a.prompt_hash AND v.sweep = 'alone' AND v.variant = 'vllm'
    WHERE a.sweep = 'alone' AND b.sweep = 'batch'),
told AS (
    SELECT variant, in_flight, prompt_hash, place,
        coalesce(left(alone, place - 1) = left(of_vllm, place - 1), false) AS as_vllm,
        CASE WHEN as_vllm THEN vllm_tokens ELSE token_text END AS tokens,
        CASE WHEN as_vllm THEN vllm_gaps ELSE token_gap END AS gaps
    FROM pair WHERE place IS NOT NULL)
SELECT variant, in_flight, prompt_hash, list_filter(range(1, len(tokens) + 1),
    lambda k: length(array_to_string(tokens[1:k], '')) >= place)[1] AS token,
    gaps[token] AS gap
FROM told

-- name: company_divergence
-- The answers in company that part from those alone, one by one.
-- uses: parted
SELECT variant, in_flight, prompt_hash, token, gap FROM parted ORDER BY variant, in_flight, token

-- name: gaps
-- How near the second likeliest token is: hundredths of all gaps of the answers alone, in nats.
SELECT variant, unnest(range(0, 101)) AS percent,
    unnest(quantile_cont(gap, [x / 100 for x in range(0, 101)])) AS gap
FROM (
    SELECT variant, unnest(token_gap) AS gap FROM measured_request
    WHERE sweep = 'alone' AND token_gap IS NOT NULL)
GROUP BY variant ORDER BY variant, percent

-- name: near_tie_share
-- Tokens of the answers alone: how many, the smallest gap, how many are exact ties, how many lie
-- within 0.125, the step of bfloat16 between 16 and 32, and how many gaps are a multiple of it.
SELECT variant, count(gap) AS tokens, min(gap) AS smallest,
    100 * avg((gap = 0)::INT) AS tied_percent,
    100 * avg((gap <= 0.125)::INT) AS below_step_percent,
    100 * avg((abs(gap - 0.125 * round(gap / 0.125)) < 0.00001)::INT) AS on_step_percent
FROM (
    SELECT variant, unnest(token_gap) AS gap FROM measured_request
    WHERE sweep = 'alone' AND token_gap IS NOT NULL)
GROUP BY variant ORDER BY variant

-- name: company_divergence_summary
-- The same, all batch sizes together.
-- uses: parted
SELECT variant, count(*) AS parted, count(gap) AS told, median(token) AS median_token,
    median(gap) AS median_gap, max(gap) AS widest_gap,
    count(*) FILTER (gap <= 0.125) AS within_step
FROM parted GROUP BY variant ORDER BY variant

-- name: model
-- What the model's own configuration says. Parameters: two bytes each in the weight file.
SELECT model_id, weight_bytes / 2 AS parameters FROM model

-- name: cost
-- What the speed cells cost on the engine's one core, measured phases alone, at the price declared
-- for the tier in the experiment that was recorded.
WITH declared AS (
    SELECT CAST(regexp_extract(split_part(experiment_toml, '[tier.' || tier || ']', 2),
        'usd_per_hour = ([0-9.]+)', 1) AS DOUBLE) AS usd_per_hour
    FROM recording)
SELECT o.variant, o.in_flight, sum(o.measured_s) AS seconds,
    sum(o.output_tokens)::BIGINT AS output_tokens,
    sum(o.measured_s) / 3600 / sum(o.output_tokens) * 1e6 * any_value(d.usd_per_hour)
        AS usd_per_million
FROM outcome o, declared d WHERE o.sweep = 'speed' AND o.verdict = 'VALID'
GROUP BY ALL ORDER BY o.variant, o.in_flight

-- name: overhead
-- How long each engine took to start.
SELECT variant, count(*) AS starts, avg((ready_ns - started_ns) / 1e9) AS ready_s
FROM engine_run GROUP BY variant ORDER BY variant

-- name: client_health
-- The instrument: user-space lag and shared reads of the load process, worst cell.
SELECT variant, max(CAST(client ->> 'user_lag_p99_ns' AS BIGINT)) / 1e6 AS user_lag_ms,
    sum(CAST(client ->> 'shared_chunks' AS BIGINT)) AS shared_chunks,
    sum(CAST(client ->> 'chunks' AS BIGINT)) AS chunks,
    sum(CAST(client ->> 'unstamped_reads' AS BIGINT)) AS unstamped_reads
FROM cell GROUP BY variant ORDER BY variant

-- name: try_fit
-- Constants of the small model, from the speed cells alone: output tokens a second of one request at
-- a time, and the share of its time that a batch spends once for all, from what eight gain over one.
WITH speed AS (
    SELECT variant, max(output_tok_per_s) FILTER (in_flight = 1) AS alone,
        max(output_tok_per_s) FILTER (in_flight = 8) AS eight
    FROM level_outcome WHERE sweep = 'speed' GROUP BY variant)
SELECT variant, alone AS alone_tok_per_s, (1 - alone / eight) / (1 - 1 / 8) AS shared_frac
FROM speed ORDER BY variant

-- name: try_points
-- What the small model is held against. part: the speed cells fitted its constants. The others are
-- the sixteen prompts in company, and their gain over the same prompts alone; they also ask for the
-- likeliest tokens, and each was recorded once.
WITH alone AS (
    SELECT variant, output_tok_per_s, CASE sweep WHEN 'alone' THEN 'batch' ELSE sweep END AS sweep
    FROM level_outcome WHERE sweep IN ('alone', 'speed') AND in_flight = 1)
SELECT o.variant, o.in_flight,
    CASE WHEN o.in_flight > 1 THEN o.output_tok_per_s / a.output_tok_per_s END AS gain,
    o.output_tok_per_s AS tok_per_s,
    CASE o.sweep WHEN 'speed' THEN 'fit' ELSE 'check' END AS part
FROM level_outcome o JOIN alone a USING (variant, sweep)
WHERE NOT ends_with(o.variant, '-bf16') ORDER BY ALL
