-- part: attention_case
-- One value a repeat: each backend on each shape, the median of its samples, and the peaks of the
-- same job. ran NULL: the profiler saw no kernel that is known, and the case is not compared.
SELECT j.repeat, k.backend, k.ran, k.dtype, k.batch, k.heads, k.kv_heads, k.q_tokens, k.kv_tokens,
    CASE WHEN k.q_tokens > 1 THEN 'prefill' ELSE 'decode' END AS phase, any_value(k.flop) AS flop,
    any_value(k.moved_bytes) AS moved_bytes, median(k.took_ns) AS took_ns,
    greatest(any_value(k.flop) / any_value(p.flop_per_ns),
        any_value(k.moved_bytes) / any_value(p.bytes_per_ns)) AS floor_ns
FROM kernel_sample k JOIN job j USING (job_id) JOIN (
    SELECT m.job_id, m.dtype, max(m.flop / m.took_ns) AS flop_per_ns,
        any_value(c.bytes_per_ns) AS bytes_per_ns
    FROM kernel_sample m JOIN (
        SELECT job_id, max(moved_bytes / took_ns) AS bytes_per_ns FROM kernel_sample
        WHERE op = 'copy' AND size_bytes = 64 << 20 GROUP BY job_id) c USING (job_id)
    WHERE m.op = 'matmul' GROUP BY m.job_id, m.dtype) p USING (job_id, dtype)
WHERE k.op = 'attention' AND j.fault IS NULL
GROUP BY j.repeat, k.backend, k.ran, k.dtype, k.batch, k.heads, k.kv_heads, k.q_tokens, k.kv_tokens

-- part: attention_level
-- The same over the repeats: mean and its 95 % interval, ms; rates, and the share of the roofline.
SELECT backend, any_value(ran) AS ran, count(DISTINCT coalesce(ran, '-')) AS kernels, dtype, batch,
    heads, kv_heads, q_tokens, kv_tokens, phase, count(*) AS repeats, avg(took_ns) / 1e6 AS ms,
    low95(took_ns) / 1e6 AS low_ms, high95(took_ns) / 1e6 AS high_ms, avg(flop / took_ns) AS gflop_s,
    avg(moved_bytes / took_ns) AS gbyte_s, any_value(flop / moved_bytes) AS flop_per_byte,
    100 * avg(floor_ns / took_ns) AS roof_percent
FROM attention_case GROUP BY ALL

-- part: step_repeat
-- One value a repeat: median time of a token after the first, ms, of each configuration.
SELECT variant, sweep, prompt_tokens, repeat, median(tpot_ms) AS tpot_ms
FROM tpot WHERE tpot_ms IS NOT NULL GROUP BY ALL

-- part: weights_of
-- Bytes of the weights, of a cached token's keys and values by number, and the type asked for.
SELECT r.run_id, r.variant, r.kv_pool_tokens, m.weight_bytes,
    (2 * (m.config->>'num_hidden_layers')::INT * (m.config->>'num_key_value_heads')::INT
        * (m.config->>'head_dim')::INT) AS kv_numbers,
    r.argv[list_position(r.argv, '--dtype') + 1] AS dtype,
    CASE WHEN list_contains(r.argv, '--kv-cache-dtype')
        THEN r.argv[list_position(r.argv, '--kv-cache-dtype') + 1] ELSE 'auto' END AS kv
FROM engine_run r JOIN model m USING (model_id) WHERE r.ready_ns IS NOT NULL

-- part: score
-- Scores of jobs that ended well.
SELECT s.* EXCLUDE (job_id) FROM token_score s JOIN job j USING (job_id) WHERE j.fault IS NULL

-- part: continuation
-- Greedy continuations token by token against the reference's: the first place where they part.
SELECT variant, text, min(place) FILTER (token <> reference) AS parts_at, count(*) AS tokens
FROM (
    SELECT g.variant, g.text, g.place, g.token, r.token AS reference
    FROM (
        SELECT key AS variant, text, unnest(range(1, len(tokens) + 1)) AS place, unnest(tokens) AS token
        FROM (
            SELECT key, unnest(range(1, len(texts) + 1)) AS text, unnest(texts) AS tokens
            FROM (
                SELECT e.key, from_json(e.value, '[["INTEGER"]]') AS texts
                FROM job j, json_each(j.facts, '$.greedy') e
                WHERE j.script = 'scores.py' AND j.fault IS NULL))) g
    JOIN (
        SELECT text, unnest(range(1, len(tokens) + 1)) AS place, unnest(tokens) AS token
        FROM (
            SELECT unnest(range(1, len(texts) + 1)) AS text, unnest(texts) AS tokens
            FROM (
                SELECT from_json(facts->'$.greedy.reference', '[["INTEGER"]]') AS texts FROM job
                WHERE script = 'scores.py' AND fault IS NULL))) r
    ON r.text = g.text AND r.place = g.place)
GROUP BY variant, text

-- name: verdicts
-- What ran: type of the numbers, pool as the engine says it, verdicts, and its answer before it was
-- measured (the first line; models made here are not asked).
-- uses: weights_of
SELECT c.variant, r.version, any_value(w.dtype) AS dtype, any_value(w.kv) AS kv,
    any_value(w.weight_bytes) / 1e6 AS weights_mb, any_value(r.kv_pool_tokens) AS pool_tokens,
    count(*) AS cells, count(*) FILTER (c.verdict = 'VALID') AS valid,
    split_part(any_value(r.probe_answer), chr(10), 1) AS answer
FROM cell c JOIN engine_run r USING (run_id) JOIN weights_of w USING (run_id)
GROUP BY c.variant, r.version ORDER BY min(c.position)

-- name: attempts
-- What was asked of an engine, what came of it, and its own words: the first line of its log that
-- names another backend, or an error; what stands before the message is cut.
SELECT name, asks, replace(outcome, '_', ' ') AS outcome,
    CASE WHEN outcome = 'answered' AND answer NOT LIKE '%"error"%'
        THEN left(split_part(answer, chr(10), 1), 60) ELSE '' END AS answer,
    left(regexp_replace(coalesce(list_filter(words, lambda line: regexp_matches(line,
            '(?i:cannot use|fallback|active drivers|unknown quant|not implemented)|[a-z]Error: \D'))[1], ''),
        '^(\([^)]*\) )?([A-Z]+ )?(\d\S* \S+ )?(\[[^]]*\] )?', ''), 200) AS words
FROM attempt ORDER BY attempt_id

-- name: replaced
-- Attempts that were answered although the engine said that it runs another backend than was asked.
SELECT count(*) FILTER (outcome = 'answered'
        AND array_to_string(words, ' ') SIMILAR TO '(?i).*(cannot use|fallback).*') AS silently,
    count(*) FILTER (outcome = 'answered') AS answered, count(*) AS asked
FROM attempt

-- name: ceiling
-- What the core can do: best rate of a matrix product, and of a copy (bytes read and written).
SELECT op, dtype, size_bytes, max(rate) AS best, min(rate) AS least, count(*) AS repeats
FROM (
    SELECT j.repeat, k.op, k.dtype, k.size_bytes,
        max(coalesce(k.flop, k.moved_bytes) / k.took_ns) AS rate
    FROM kernel_sample k JOIN job j USING (job_id)
    WHERE k.op IN ('matmul', 'copy') AND j.fault IS NULL GROUP BY ALL)
GROUP BY op, dtype, size_bytes ORDER BY op DESC, dtype DESC, size_bytes

-- name: ceiling_words
-- The same as single values: Gflop/s of a product, GB/s of a copy that exceeds the L2 cache.
SELECT max(flop / took_ns) FILTER (op = 'matmul' AND dtype = 'float32') AS gflop32_s,
    max(flop / took_ns) FILTER (op = 'matmul' AND dtype = 'bfloat16') AS gflop16_s,
    max(moved_bytes / took_ns) FILTER (op = 'copy' AND size_bytes = 64 << 20) AS gbyte_s,
    gflop32_s / gbyte_s AS ridge32, gflop16_s / gbyte_s AS ridge16
FROM kernel_sample JOIN job USING (job_id) WHERE fault IS NULL

-- name: attention
-- Attention by length at the heads of the model, 9 over 3: time, rate, share of the roofline, and
-- what ran. One sequence.
-- uses: attention_case, attention_level
SELECT phase, dtype, kv_tokens, backend, coalesce(ran, 'not verified') AS ran, ms, low_ms, high_ms,
    gflop_s, gbyte_s, roof_percent, repeats
FROM attention_level WHERE batch = 1 AND heads = 9 AND kv_heads = 3
ORDER BY phase DESC, dtype DESC, kv_tokens, backend

-- name: attention_wide
-- The same, a row a length and a column a backend: ms.
-- uses: attention_case, attention_level
SELECT phase, dtype, kv_tokens, max(ms) FILTER (backend = 'sdpa') AS sdpa_ms,
    max(ms) FILTER (backend = 'sdpa-flash') AS flash_ms,
    max(ms) FILTER (backend = 'sdpa-math') AS math_ms, max(ms) FILTER (backend = 'vllm') AS vllm_ms,
    max(ms) FILTER (backend = 'vllm-vec') AS vec_ms,
    max(ms) FILTER (backend = 'vllm-fp8kv') AS fp8_ms,
    max(ran) FILTER (backend = 'sdpa') AS sdpa_ran
FROM attention_level WHERE batch = 1 AND heads = 9 AND kv_heads = 3 AND ran IS NOT NULL
GROUP BY phase, dtype, kv_tokens ORDER BY phase DESC, dtype DESC, kv_tokens

-- name: shape_wide
-- Other shapes than the model's own: more sequences, as many key heads as query heads, more heads.
-- uses: attention_case, attention_level
SELECT phase, dtype, batch, heads, kv_heads, kv_tokens,
    max(roof_percent) FILTER (backend = 'sdpa-flash') AS flash_percent,
    max(roof_percent) FILTER (backend = 'sdpa-math') AS math_percent,
    max(roof_percent) FILTER (backend = 'vllm') AS vllm_percent,
    max(ms) FILTER (backend = 'sdpa-flash') AS flash_ms, max(ms) FILTER (backend = 'vllm') AS vllm_ms
FROM attention_level WHERE ran IS NOT NULL AND kv_tokens = CASE WHEN q_tokens > 1 THEN 512 ELSE 2048 END
GROUP BY phase, dtype, batch, heads, kv_heads, kv_tokens
ORDER BY phase DESC, dtype DESC, batch, heads, kv_heads DESC

-- name: roof_points
-- Each backend at each length and shape in 32 bits: work for each byte, and what was reached of it.
-- uses: attention_case, attention_level
SELECT phase, backend, flop_per_byte, gflop_s, gbyte_s, roof_percent, batch, heads, kv_heads, kv_tokens
FROM attention_level WHERE ran IS NOT NULL AND dtype = 'float32' AND backend <> 'vllm-fp8kv'
ORDER BY backend, phase, flop_per_byte

-- name: roof_lines
-- The roofline of 32 bits: what the bytes allow, up to what the product reaches.
SELECT dtype, x AS flop_per_byte, least(gflop_s, x * gbyte_s) AS gflop_s
FROM (
    SELECT dtype, max(flop / took_ns) AS gflop_s FROM kernel_sample JOIN job USING (job_id)
    WHERE op = 'matmul' AND fault IS NULL GROUP BY dtype) m, (
    SELECT max(moved_bytes / took_ns) AS gbyte_s FROM kernel_sample JOIN job USING (job_id)
    WHERE op = 'copy' AND size_bytes = 64 << 20 AND fault IS NULL) c,
    (SELECT unnest([0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000]) AS x)
ORDER BY dtype DESC, x

-- name: roof_best
-- The best share of the roofline that each backend reached, by phase and type.
-- uses: attention_case, attention_level
SELECT phase, dtype, backend, any_value(ran) AS ran, max(roof_percent) AS best_percent,
    arg_max(kv_tokens, roof_percent) AS at_tokens, min(roof_percent) AS least_percent
FROM attention_level WHERE ran IS NOT NULL GROUP BY phase, dtype, backend
ORDER BY phase DESC, dtype DESC, best_percent DESC

-- name: chosen
-- What PyTorch chose by itself, over all shapes.
SELECT coalesce(ran, 'not verified') AS ran, count(DISTINCT (dtype, batch, heads, kv_heads, q_tokens, kv_tokens)) AS shapes
FROM kernel_sample JOIN job USING (job_id)
WHERE op = 'attention' AND backend = 'sdpa' AND fault IS NULL GROUP BY ran ORDER BY shapes DESC

-- name: kernel_errors
-- How far each backend is from attention in 64 bits: the worst repeat, by queries at once.
SELECT e.dtype, e.backend, max(e.error) FILTER (e.q_tokens = 1) AS one,
    max(e.error) FILTER (e.q_tokens = 37) AS few, max(e.error) FILTER (e.q_tokens = 512) AS many
FROM (
    SELECT unnest(from_json(facts->'errors', '[{"backend": "VARCHAR", "dtype": "VARCHAR", "q_tokens": "INTEGER", "error": "DOUBLE"}]'), recursive := true)
    FROM job WHERE script = 'kernels.py' AND fault IS NULL) e
GROUP BY e.dtype, e.backend ORDER BY e.dtype DESC, e.backend

-- name: kernel_refused
-- Backends that PyTorch or vLLM refused, in their words.
SELECT DISTINCT j.script, e.key AS backend, e.value->>'$' AS words
FROM job j, json_each(j.facts, '$.refused') e WHERE j.fault IS NULL ORDER BY ALL

-- name: in_model
-- A forward pass of the whole model in Transformers, by attention: mean over repeats and interval, ms.
SELECT backend, any_value(ran) AS ran, phase, count(*) AS repeats, avg(ms) AS ms, low95(ms) AS low_ms,
    high95(ms) AS high_ms
FROM (
    SELECT j.repeat, k.backend, coalesce(k.ran, 'not verified') AS ran,
        CASE WHEN k.q_tokens > 1 THEN 'prefill' ELSE 'decode' END AS phase, median(k.took_ns) / 1e6 AS ms
    FROM kernel_sample k JOIN job j USING (job_id)
    WHERE k.op = 'model' AND j.fault IS NULL GROUP BY ALL)
GROUP BY backend, phase ORDER BY phase DESC, ms

-- name: in_model_wide
-- The same, a row a backend.
SELECT backend, any_value(ran) AS ran, avg(took_ns) FILTER (q_tokens > 1) / 1e6 AS prefill_ms,
    median(took_ns) FILTER (q_tokens = 1) / 1e6 AS decode_ms, count(DISTINCT job_id) AS repeats
FROM kernel_sample JOIN job USING (job_id) WHERE op = 'model' AND fault IS NULL
GROUP BY backend ORDER BY prefill_ms

-- name: speed
-- Time of a token at two contexts, ms: mean over repeats with its interval, and the ratio to 32 bits
-- repeat by repeat.
-- uses: step_repeat, weights_of
SELECT s.variant, s.sweep, s.prompt_tokens, count(*) AS repeats, avg(s.tpot_ms) AS tpot_ms,
    low95(s.tpot_ms) AS low_ms, high95(s.tpot_ms) AS high_ms, avg(s.tpot_ms / b.tpot_ms) AS ratio,
    low95(s.tpot_ms / b.tpot_ms) AS ratio_low, high95(s.tpot_ms / b.tpot_ms) AS ratio_high
FROM step_repeat s JOIN step_repeat b ON b.variant = 'vllm' AND b.sweep = s.sweep AND b.repeat = s.repeat
GROUP BY s.variant, s.sweep, s.prompt_tokens
ORDER BY s.prompt_tokens, list_position(['vllm', 'vllm-bf16', 'vllm-int8', 'vllm-int4', 'vllm-fp8kv'], s.variant)

-- name: pool
-- The pool of each configuration: tokens by the engine's log, and by the bytes of a token.
-- uses: weights_of
SELECT variant, any_value(kv) AS kv, any_value(dtype) AS dtype,
    any_value(kv_numbers * CASE WHEN kv LIKE 'fp8%' THEN 1 WHEN dtype = 'float32' THEN 4 ELSE 2 END)
        AS token_bytes,
    min(kv_pool_tokens) AS pool_tokens, max(kv_pool_tokens) AS most_tokens,
    (2::BIGINT ** 30 // (token_bytes * 128))::BIGINT * 128 AS computed_tokens
FROM weights_of WHERE kv_pool_tokens IS NOT NULL AND variant IN (SELECT variant FROM cell)
GROUP BY variant ORDER BY pool_tokens, variant

-- name: context_cost
-- What a token of context adds to a step, microseconds: from the two contexts, repeat by repeat.
-- uses: step_repeat
SELECT variant, count(*) AS repeats, avg(us) AS us, low95(us) AS low_us, high95(us) AS high_us
FROM (
    SELECT l.variant, l.repeat,
        1e3 * (l.tpot_ms - s.tpot_ms) / (l.prompt_tokens - s.prompt_tokens) AS us
    FROM step_repeat l JOIN step_repeat s USING (variant, repeat)
    WHERE l.sweep = 'long' AND s.sweep = 'short')
GROUP BY variant ORDER BY us DESC

-- name: quality
-- What each precision does to the predictions, over the tokens of the held-out texts: perplexity, the
-- reference's, divergence (mean and the 99th percentile, nats), and the share of tokens with the same
-- best token; and greedy continuations that have every token of the reference's.
-- uses: score, continuation
SELECT s.variant, count(*) AS tokens, exp(-avg(s.logprob)) AS perplexity,
    exp(-avg(s.reference_logprob)) AS reference_perplexity,
    100 * (exp(avg(s.reference_logprob) - avg(s.logprob)) - 1) AS worse_percent,
    avg(s.kl_nats) AS kl_mean, quantile_cont(s.kl_nats, 0.99) AS kl_p99, max(s.kl_nats) AS kl_most,
    100 * avg(s.top1::INT) AS same_percent, any_value(g.texts) AS texts,
    any_value(g.equal_texts) AS equal_texts, any_value(g.parts_at) AS parts_at
FROM score s JOIN (
    SELECT variant, count(*) AS texts, count(*) FILTER (parts_at IS NULL) AS equal_texts,
        median(parts_at) AS parts_at
    FROM continuation GROUP BY variant) g USING (variant)
WHERE s.variant <> 'reference' GROUP BY s.variant ORDER BY kl_mean

-- name: kl_spread
-- Divergence token by token: shares of the tokens below it.
-- uses: score
SELECT variant, unnest([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0]) AS share,
    unnest(quantile_cont(kl_nats,
        [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0])) AS kl_nats
FROM score WHERE variant <> 'reference' GROUP BY variant ORDER BY variant, share

-- name: parts
-- After how many greedy tokens each continuation parts from the reference's; empty for never.
-- uses: continuation
SELECT variant, text, parts_at, tokens FROM continuation WHERE variant <> 'reference'
ORDER BY variant, text

-- name: engine_objects
-- What vLLM really ran for each row of the quality table, by its own objects and the profiler: attention,
-- its instructions, type of the cache, and the matrix product of most time.
SELECT e.key AS variant, e.value->>'attention' AS attention, e.value->>'isa' AS isa,
    e.value->>'kv_dtype' AS kv_dtype, e.value->>'linear' AS linear,
    (SELECT arg_max(o.key, o.value::DOUBLE) FROM json_each(e.value, '$.operators_ms') o
        WHERE o.key NOT LIKE '%attention%') AS product,
    (SELECT 100 * sum(o.value::DOUBLE) FILTER (o.key LIKE '%cpu_attention%') / sum(o.value::DOUBLE)
        FROM json_each(e.value, '$.operators_ms') o) AS attention_percent
FROM job j, json_each(j.facts, '$.ran') e WHERE j.script = 'scores.py' AND j.fault IS NULL

-- name: near_tie
-- One question, asked of each precision: the answer's beginning, and how near the second likeliest first
-- token was, nats.
SELECT e.key AS variant, left(split_part(e.value->>'answer', chr(10), 1), 50) AS answer,
    e.value->>'$.tokens[0]' AS first, e.value->>'$.tokens[1]' AS second,
    (e.value->>'$.logprobs[0]')::DOUBLE AS first_logprob,
    (e.value->>'$.logprobs[0]')::DOUBLE - (e.value->>'$.logprobs[1]')::DOUBLE AS gap
FROM job j, json_each(j.facts, '$.question') e WHERE j.script = 'scores.py' AND j.fault IS NULL

-- name: trade
-- What each precision that was timed brings and costs: time of a token at the short context against 32
-- bits, size of the weights and pool, and the divergence of the same precision.
-- uses: step_repeat, weights_of, score
SELECT t.variant, t.weights_mb, t.pool_tokens, t.ratio, t.ratio_low, t.ratio_high, q.kl_mean,
    q.same_percent
FROM (
    SELECT s.variant, any_value(w.weight_bytes * CASE WHEN w.dtype = 'float32' THEN 2 ELSE 1 END) / 1e6
            AS weights_mb, any_value(w.kv_pool_tokens) AS pool_tokens,
        avg(s.tpot_ms / b.tpot_ms) AS ratio, low95(s.tpot_ms / b.tpot_ms) AS ratio_low,
        high95(s.tpot_ms / b.tpot_ms) AS ratio_high
    FROM step_repeat s JOIN step_repeat b ON b.variant = 'vllm' AND b.sweep = s.sweep AND b.repeat = s.repeat
    JOIN (SELECT DISTINCT variant, dtype, weight_bytes, kv_pool_tokens FROM weights_of) w ON w.variant = s.variant
    WHERE s.sweep = 'short' GROUP BY s.variant) t
LEFT JOIN (
    SELECT variant, avg(kl_nats) AS kl_mean, 100 * avg(top1::INT) AS same_percent FROM score
    GROUP BY variant) q
    ON q.variant = CASE t.variant WHEN 'vllm' THEN 'reference' WHEN 'vllm-bf16' THEN 'bf16'
        WHEN 'vllm-int8' THEN 'int8' WHEN 'vllm-int4' THEN 'w4a16' ELSE 'kv-fp8' END
ORDER BY list_position(['vllm', 'vllm-bf16', 'vllm-int8', 'vllm-int4', 'vllm-fp8kv'], t.variant)

-- name: scores_refused
-- Precisions that vLLM refused to load or run, in its words.
SELECT e.key AS variant, e.value->>'$' AS words
FROM job j, json_each(j.facts, '$.refused') e WHERE j.script = 'scores.py' AND j.fault IS NULL

-- name: refusals
-- How many precisions vLLM refused.
SELECT count(*) AS scores FROM job j, json_each(j.facts, '$.refused') e
WHERE j.script = 'scores.py' AND j.fault IS NULL

-- name: kernel_fit
-- Attention's time as base + per pair of query and key x pairs, through the two middle lengths.
-- uses: attention_case, attention_level
SELECT backend, phase, (b.ms - a.ms) / (b.pairs - a.pairs) * 1e6 AS per_pair_ns,
    greatest(0, a.ms - a.pairs * (b.ms - a.ms) / (b.pairs - a.pairs)) AS base_ms, gflop_s, gbyte_s
FROM (
    SELECT backend, phase, ms, kv_tokens, kv_tokens * CASE WHEN q_tokens > 1 THEN (kv_tokens + 1) / 2 ELSE 1 END AS pairs
    FROM attention_level WHERE dtype = 'float32' AND batch = 1 AND heads = 9 AND kv_heads = 3 AND kv_tokens = 512) a
JOIN (
    SELECT backend, phase, ms, kv_tokens * CASE WHEN q_tokens > 1 THEN (kv_tokens + 1) / 2 ELSE 1 END AS pairs
    FROM attention_level WHERE dtype = 'float32' AND batch = 1 AND heads = 9 AND kv_heads = 3 AND kv_tokens = 8192) b
USING (backend, phase), (
    SELECT max(flop / took_ns) FILTER (op = 'matmul' AND dtype = 'float32') AS gflop_s,
        max(moved_bytes / took_ns) FILTER (op = 'copy' AND size_bytes = 64 << 20) AS gbyte_s
    FROM kernel_sample JOIN job USING (job_id) WHERE fault IS NULL)
WHERE backend IN ('sdpa-flash', 'sdpa-math', 'vllm')

-- name: kernel_points
-- The lengths that were recorded: two for the fit, two to check it.
-- uses: attention_case, attention_level
SELECT backend, phase, kv_tokens AS tokens,
    CASE WHEN kv_tokens IN (512, 8192) THEN 'fit' ELSE 'check' END AS part, ms
FROM attention_level
WHERE dtype = 'float32' AND batch = 1 AND heads = 9 AND kv_heads = 3
    AND backend IN ('sdpa-flash', 'sdpa-math', 'vllm')

-- name: pool_points
-- The pools that were recorded: bytes of a number in the cache, GiB, and tokens.
-- uses: weights_of
SELECT DISTINCT CASE WHEN kv LIKE 'fp8%' THEN 1 WHEN dtype = 'float32' THEN 4 ELSE 2 END AS number_bytes,
    1 AS pool_gib, 'SmolLM2-135M' AS model, 128 AS block_tokens, 'check' AS part, kv_pool_tokens AS pool_tokens
FROM weights_of WHERE kv_pool_tokens IS NOT NULL AND variant IN (SELECT variant FROM cell)

-- name: rejected
-- The cells that no figure uses, and why.
SELECT c.variant, c.sweep, c.repeat, unnest(c.reasons) AS reason FROM cell c
WHERE c.verdict = 'INVALID' ORDER BY ALL

-- name: rejected_count
-- How many cells are INVALID.
SELECT count(*) AS cells FROM cell WHERE verdict = 'INVALID'

-- name: jobs
-- Jobs that ended, and those that failed.
SELECT name, environment, count(*) AS runs, count(*) FILTER (fault IS NOT NULL) AS failed,
    avg(ended_ns - started_ns) / 1e9 AS mean_s
FROM job GROUP BY name, environment ORDER BY name
