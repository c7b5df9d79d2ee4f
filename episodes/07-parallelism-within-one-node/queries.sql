-- Episode 07. A layout is a variant: vllm (one copy, one core), vllm-threads (one copy, two threads),
-- vllm-tp, vllm-pp and vllm-dp (two processes each).

-- name: layouts
-- What ran, by layout: processes that compute, cores, pools by the engine's metrics (one a copy), what
-- the pool should be, cells and verdicts, and the median time of a start. Predicted: whole blocks of
-- 128 tokens of what the fullest process keeps of a token, out of the declared memory of a process.
WITH shape AS (
    SELECT any_value((config->>'num_hidden_layers')::INT) AS layers,
        any_value(2 * (config->>'num_key_value_heads')::INT * (config->>'head_dim')::INT * 4)
            AS layer_bytes FROM model WHERE model_id = 'made-dense'),
pool AS (
    SELECT run_id, count(DISTINCT labels) AS copies,
        sum(DISTINCT regexp_extract(labels, '(^|,)kv_cache_memory_bytes=([0-9]+)', 2)::BIGINT)
            AS memory_bytes,
        min(regexp_extract(labels, '(^|,)kv_cache_size_tokens=([0-9]+)', 2)::BIGINT) AS copy_tokens,
        sum(regexp_extract(labels, '(^|,)kv_cache_size_tokens=([0-9]+)', 2)::BIGINT) AS pool_tokens
    FROM (SELECT DISTINCT run_id, labels FROM engine_metric WHERE name = 'vllm:cache_config_info')
    GROUP BY run_id),
run AS (
    SELECT r.variant, any_value(r.version) AS version, any_value(r.cores) AS cores,
        any_value(p.copies) AS copies, any_value(p.memory_bytes) AS memory_bytes,
        any_value(p.copy_tokens) AS copy_tokens, any_value(p.pool_tokens)::BIGINT AS pool_tokens,
        median(r.ready_ns - r.started_ns) / 1e9 AS start_s
    FROM engine_run r JOIN pool p USING (run_id) JOIN cell c USING (run_id)
    WHERE r.engine = 'vllm' GROUP BY r.variant),
verdicts AS (
    SELECT variant, count(*) AS cells, count(*) FILTER (verdict = 'VALID') AS valid
    FROM cell GROUP BY variant)
SELECT variant, version, len(cores) AS cores,
    CASE WHEN variant IN ('vllm', 'vllm-threads') THEN 1 ELSE 2 END AS processes, copies,
    copy_tokens, pool_tokens,
    (copies * floor(memory_bytes / (128 * layer_bytes * CASE variant WHEN 'vllm-tp' THEN layers / 2
        WHEN 'vllm-pp' THEN 10 ELSE layers END)) * 128)::BIGINT AS predicted_tokens,
    pool_tokens / first_value(pool_tokens) OVER (ORDER BY variant) AS pool_times, start_s, cells,
    valid
FROM run JOIN verdicts USING (variant), shape
ORDER BY list_position(['vllm', 'vllm-threads', 'vllm-tp', 'vllm-pp', 'vllm-dp'], variant)

-- name: load
-- Output tokens a second, time to the first token and time of each token after it, by layout and
-- requests in flight: means over repeats with 95 % Student-t intervals. times: throughput over that
-- of the plain engine at the same level, within a repeat.
WITH rate AS (
    SELECT variant, repeat, in_flight, output_tok_per_s AS rate,
        output_tok_per_s / max(output_tok_per_s) FILTER (variant = 'vllm')
            OVER (PARTITION BY repeat, in_flight) AS times
    FROM outcome WHERE verdict = 'VALID' AND sweep IN ('load', 'half')),
wait AS (
    SELECT variant, in_flight, max(p50_ms) FILTER (metric = 'ttft') AS ttft_ms,
        max(p50_ms) FILTER (metric = 'tpot') AS tpot_ms,
        max(low_ms) FILTER (metric = 'tpot') AS tpot_low_ms,
        max(high_ms) FILTER (metric = 'tpot') AS tpot_high_ms
    FROM level_p50 WHERE sweep IN ('load', 'half') GROUP BY ALL)
SELECT variant, in_flight, avg(rate) AS tok_per_s, low95(rate) AS low, high95(rate) AS high,
    avg(times) AS times, low95(times) AS times_low, high95(times) AS times_high,
    any_value(ttft_ms) AS ttft_ms, any_value(tpot_ms) AS tpot_ms,
    any_value(tpot_low_ms) AS tpot_low_ms, any_value(tpot_high_ms) AS tpot_high_ms,
    count(*) AS repeats
FROM rate JOIN wait USING (variant, in_flight) GROUP BY variant, in_flight
ORDER BY in_flight, list_position(['vllm', 'vllm-threads', 'vllm-tp', 'vllm-pp', 'vllm-dp'], variant)

-- name: step
-- Steps that only decode, as the engine's log times them: by layout and requests in the step, the
-- median within a repeat, then mean over repeats with its 95 % Student-t interval, ms. Of the cells
-- of `load` and `half`, warm-up included.
WITH one AS (
    SELECT c.variant, c.repeat, s.decode_requests, median(s.took_ms) AS took_ms, count(*) AS steps
    FROM scheduler_step s JOIN cell c USING (cell_id)
    WHERE c.sweep IN ('load', 'half') AND c.verdict = 'VALID' AND s.prefill_tokens = 0
        AND s.decode_requests > 0 GROUP BY ALL)
SELECT variant, decode_requests, avg(took_ms) AS step_ms, low95(took_ms) AS low_ms,
    high95(took_ms) AS high_ms, sum(steps)::BIGINT AS steps, count(*) AS repeats
FROM one GROUP BY ALL ORDER BY variant, decode_requests

-- name: collectives
-- The bare operations on two pinned processes: the median of the samples of a repeat, then mean over
-- repeats with its 95 % Student-t interval. gb_per_s: the size over that time.
WITH one AS (
    SELECT k.op, k.backend, k.batch, k.size_bytes, j.repeat, median(k.took_ns) / 1e3 AS took_us
    FROM kernel_sample k JOIN job j USING (job_id)
    WHERE j.fault IS NULL AND j.name = 'collectives' AND k.op IN ('all_reduce', 'all_gather')
    GROUP BY ALL)
SELECT op, backend, batch, size_bytes / 1024 AS size_kib, avg(took_us) AS took_us,
    low95(took_us) AS low_us, high95(took_us) AS high_us,
    any_value(size_bytes) / avg(took_us) / 1e3 AS gb_per_s, count(*) AS repeats
FROM one GROUP BY op, backend, batch, size_bytes ORDER BY op DESC, backend, batch

-- name: both_at_once
-- Copies and products of the same kind by one process alone, and by two at once that share nothing
-- but the machine: time of one, and what the other's presence costs. Intervals over repeats.
WITH one AS (
    SELECT k.op, k.batch, k.size_bytes, j.repeat,
        median(k.took_ns) FILTER (k.ranks = 1) / 1e6 AS alone_ms,
        median(k.took_ns) FILTER (k.ranks = 2) / 1e6 AS both_ms, any_value(k.moved_bytes) AS moved
    FROM kernel_sample k JOIN job j USING (job_id)
    WHERE j.fault IS NULL AND j.name = 'collectives' AND k.op IN ('copy', 'matmul') GROUP BY ALL)
SELECT op, batch, any_value(moved) / 1048576 AS moved_mib, avg(alone_ms) AS alone_ms,
    avg(both_ms) AS both_ms, any_value(moved) / avg(alone_ms) / 1e6 AS alone_gb_per_s,
    any_value(moved) / avg(both_ms) / 1e6 AS both_gb_per_s,
    avg(both_ms / alone_ms) AS times, low95(both_ms / alone_ms) AS times_low,
    high95(both_ms / alone_ms) AS times_high
FROM one GROUP BY op, batch, size_bytes ORDER BY op, moved_mib, batch

-- name: talk
-- Tensor parallelism step by step: what a decode step of n requests must say to the other process
-- (two all-reduces a layer and one of the embedding, hidden values of 4 bytes for each request; one
-- all-gather of half the vocabulary's logits each), what that takes bare, and what the step took.
-- ideal: half a step of the plain engine. Ms; over is what the recorded step has above ideal + bare.
WITH shape AS (
    SELECT 2 * any_value((config->>'num_hidden_layers')::INT) + 1 AS all_reduces,
        any_value((config->>'hidden_size')::INT * 4) AS hidden_bytes,
        any_value((config->>'vocab_size')::INT // 2 * 4) AS logit_bytes
    FROM model WHERE model_id = 'made-dense'),
bare AS (
    SELECT k.backend, k.batch, j.repeat, median(k.took_ns) FILTER (k.op = 'all_reduce') / 1e6 AS reduce_ms,
        median(k.took_ns) FILTER (k.op = 'all_gather') / 1e6 AS gather_ms
    FROM kernel_sample k JOIN job j USING (job_id)
    WHERE j.fault IS NULL AND j.name = 'collectives' AND k.op IN ('all_reduce', 'all_gather')
    GROUP BY ALL),
spoken AS (
    SELECT b.batch, avg(all_reduces * reduce_ms + gather_ms) FILTER (backend = 'shm') AS shm_ms,
        avg(all_reduces * reduce_ms + gather_ms) FILTER (backend = 'gloo') AS gloo_ms
    FROM bare b, shape WHERE gather_ms IS NOT NULL GROUP BY b.batch),
step AS (
    SELECT variant, decode_requests AS batch, repeat, took_ms FROM (
        SELECT c.variant, c.repeat, s.decode_requests, median(s.took_ms) AS took_ms
        FROM scheduler_step s JOIN cell c USING (cell_id)
        WHERE c.sweep IN ('load', 'half') AND c.verdict = 'VALID' AND s.prefill_tokens = 0
        GROUP BY ALL)),
both_steps AS (
    SELECT batch, avg(took_ms) FILTER (variant = 'vllm') AS plain_ms,
        avg(took_ms) FILTER (variant = 'vllm-tp') AS tp_ms,
        avg(took_ms) FILTER (variant = 'vllm-threads') AS threads_ms
    FROM step GROUP BY batch)
SELECT batch, all_reduces, batch * hidden_bytes / 1024 AS reduce_kib,
    (all_reduces * batch * hidden_bytes + batch * logit_bytes) / 1024 AS step_kib,
    plain_ms, plain_ms / 2 AS ideal_ms, shm_ms, gloo_ms, plain_ms / 2 + shm_ms AS predicted_ms,
    threads_ms, threads_ms - plain_ms / 2 AS threads_over_ms, tp_ms,
    tp_ms - plain_ms / 2 - shm_ms AS over_ms,
    100 * shm_ms / tp_ms AS talk_percent
FROM both_steps JOIN spoken USING (batch), shape WHERE tp_ms IS NOT NULL AND plain_ms IS NOT NULL
ORDER BY batch

-- name: caches
-- The same documents to one cache and to two: measured requests, those that found nothing, tokens
-- from the cache, and what one cache of everything gives. Rates and TTFT: mean over repeats, with
-- 95 % Student-t intervals of the rate.
WITH one AS (
    SELECT p.variant, p.repeat, p.cell_id, any_value(p.documents) AS documents, count(*) AS requests,
        count(*) FILTER (p.cached_tokens = 0) AS cold, sum(p.cached_tokens) AS cached_tokens,
        sum(p.predicted_tokens) AS predicted_tokens, sum(p.server_prompt_tokens) AS asked_tokens,
        median(t.from_sent_ms) AS ttft_ms
    FROM cached_prefix p JOIN ttft t USING (cell_id, request_id)
    WHERE p.sweep = 'shared' GROUP BY ALL)
SELECT variant, count(*) AS repeats, any_value(documents) AS documents,
    sum(one.requests)::BIGINT AS requests, avg(cold) AS cold, min(cold) AS cold_least,
    max(cold) AS cold_most, 100 * sum(cached_tokens) / sum(asked_tokens) AS cached_percent,
    100 * sum(predicted_tokens) / sum(asked_tokens) AS predicted_percent,
    avg(asked_tokens / o.measured_s) AS prompt_per_s, low95(asked_tokens / o.measured_s) AS low,
    high95(asked_tokens / o.measured_s) AS high, avg(ttft_ms) AS ttft_ms
FROM one JOIN outcome o USING (cell_id, variant, repeat) GROUP BY variant ORDER BY variant DESC

-- name: router
-- Which copy took the requests of a cell of vllm-dp: prompts that each copy began, by the engine's
-- log. uneven: the larger share, %. Only cells of which the log was read in time, so that every prompt
-- is counted (the harness reads it on a core that the engine keeps busy).
WITH begun AS (
    SELECT c.sweep, c.in_flight, c.cell_id, regexp_extract(l.line, 'Engine (\d+)', 1) AS copy,
        sum(regexp_extract(l.line, '(\d+) context requests', 1)::INT) AS prompts
    FROM log_line l JOIN cell c ON c.run_id = l.run_id AND l.t_ns BETWEEN c.measured_ns AND c.ended_ns
    WHERE c.variant = 'vllm-dp' AND c.verdict = 'VALID' AND contains(l.line, 'Iteration(') GROUP BY ALL),
cells AS (
    SELECT sweep, in_flight, cell_id, coalesce(max(prompts) FILTER (copy = '000'), 0) AS first_copy,
        coalesce(max(prompts) FILTER (copy = '001'), 0) AS second_copy FROM begun GROUP BY ALL),
sent AS (SELECT cell_id, count(*) AS requests FROM measured_request GROUP BY cell_id)
SELECT sweep, in_flight, count(*) AS cells, avg(first_copy) AS first_copy, avg(second_copy) AS second_copy,
    avg(100 * greatest(first_copy, second_copy) / (first_copy + second_copy)) AS uneven_percent
FROM cells JOIN sent USING (cell_id) WHERE first_copy + second_copy = requests
GROUP BY ALL ORDER BY sweep, in_flight

-- name: copies
-- Two copies of eight requests against one, and why: output tokens a second of one core with eight;
-- what two cores give if each did as one core with four and nothing was shared; what two copies gave;
-- and what one copy with both cores gave. Mean over repeats, of ratios within a repeat, with 95 %
-- Student-t intervals: batch (two halves of a batch instead of a whole), sharing (two copies on one
-- machine instead of two machines), and the two copies over the one with both cores.
WITH rate AS (
    SELECT repeat, max(output_tok_per_s) FILTER (variant = 'vllm' AND in_flight = 8) AS one_8,
        max(output_tok_per_s) FILTER (variant = 'vllm' AND in_flight = 4) AS one_4,
        max(output_tok_per_s) FILTER (variant = 'vllm-dp' AND in_flight = 8) AS dp_8,
        max(output_tok_per_s) FILTER (variant = 'vllm-threads' AND in_flight = 8) AS threads_8
    FROM outcome WHERE verdict = 'VALID' AND sweep IN ('load', 'half') GROUP BY repeat)
SELECT avg(one_8) AS one_8, avg(one_4) AS one_4, 2 * avg(one_8) AS twice, 2 * avg(one_4) AS halves,
    avg(dp_8) AS dp_8, avg(threads_8) AS threads_8, avg(one_4 / one_8) AS batch_times,
    low95(one_4 / one_8) AS batch_low, high95(one_4 / one_8) AS batch_high,
    avg(dp_8 / one_4 / 2) AS sharing_times, low95(dp_8 / one_4 / 2) AS sharing_low,
    high95(dp_8 / one_4 / 2) AS sharing_high, avg(dp_8 / one_8) AS dp_times,
    avg(dp_8 / threads_8) AS against_one, low95(dp_8 / threads_8) AS against_low,
    high95(dp_8 / threads_8) AS against_high, count(*) AS repeats
FROM rate WHERE one_4 > 0 AND one_8 > 0 AND dp_8 > 0 AND threads_8 > 0

-- name: busy
-- Cores busy while a cell was measured: in all, by the engine's processes, and the rest (client,
-- harness and system), in cores; weighted by time, over the same samples. The load process alone, by
-- its own account, and how late it read (p99 after the kernel's stamp). looks_late_s: the longest
-- time between two looks of the harness at the machine, which are to be half a second apart.
WITH sample AS (
    SELECT c.cell_id, c.variant, c.sweep, c.in_flight, c.client, h.t_ns, h.engine_cpu_s,
        list_sum(h.core_busy_frac) AS busy,
        (h.t_ns - lag(h.t_ns) OVER w) / 1e9 AS passed_s,
        h.engine_cpu_s - lag(h.engine_cpu_s) OVER w AS engine_s,
        h.t_ns BETWEEN c.measured_ns + 600000000 AND c.ended_ns + 300000000 AS inside
    FROM host_sample h JOIN cell c USING (cell_id) WHERE c.verdict = 'VALID'
    WINDOW w AS (PARTITION BY c.cell_id ORDER BY h.t_ns)),
one AS (
    SELECT cell_id, variant, sweep, in_flight, any_value(client) AS client,
        sum(busy * passed_s) FILTER (inside) / sum(passed_s) FILTER (inside) AS busy,
        sum(engine_s) FILTER (inside) / sum(passed_s) FILTER (inside) AS engine,
        max(passed_s) AS late_s
    FROM sample GROUP BY ALL)
SELECT variant, sweep, in_flight, count(*) AS cells, avg(busy) AS busy_cores,
    avg(engine) AS engine_cores, avg(busy - engine) AS other_cores,
    100 * avg((client->>'cpu_frac')::DOUBLE) AS client_percent,
    max((client->>'user_lag_p99_ns')::DOUBLE) / 1e6 AS client_late_ms, max(late_s) AS looks_late_s
FROM one GROUP BY variant, sweep, in_flight
ORDER BY sweep, in_flight,
    list_position(['vllm', 'vllm-threads', 'vllm-tp', 'vllm-pp', 'vllm-dp'], variant)

-- name: pipeline
-- Steps of the pipeline with eight in flight, by how many requests they decode: where two batches
-- take turns, each has a part of the eight.
SELECT s.decode_requests, count(*) AS steps, 100 * count(*) / sum(count(*)) OVER () AS percent
FROM scheduler_step s JOIN cell c USING (cell_id)
WHERE c.variant = 'vllm-pp' AND c.sweep = 'load' AND c.in_flight = 8 AND c.verdict = 'VALID'
    AND s.prefill_tokens = 0 AND s.decode_requests > 0 AND s.t_ns > c.measured_ns
GROUP BY ALL ORDER BY s.decode_requests

-- name: attempts
-- What was asked once, and what came of it. said: of a refusal the first line of its log that names
-- the cause, of an answer the line about its pool or its all-reduce.
WITH line AS (
    SELECT a.name, arg_min(l.line, l.t_ns) FILTER (regexp_matches(l.line,
            'assert self\.|Value error, |died unexpectedly|Error: .*has no attribute')) AS cause,
        arg_min(l.line, l.t_ns) FILTER (regexp_matches(l.line, 'KV cache size|AllReduce is disabled'))
            AS kept
    FROM attempt a JOIN log_line l USING (run_id) GROUP BY a.name)
SELECT a.name, r.engine, a.asks, a.outcome,
    trim(regexp_replace(CASE WHEN a.outcome = 'answered' THEN kept
        ELSE coalesce(cause, split_part(r.exit_note, chr(10), 1)) END,
        '^.*?(INFO|ERROR|WARNING) [0-9: -]+\[[a-z_.:0-9]+\]|^\[[0-9: -]+[A-Z0-9 ]*\]|\[type=.*$', '',
        'g')) AS said,
    r.kv_pool_tokens AS pool_tokens
FROM attempt a JOIN engine_run r USING (run_id) LEFT JOIN line USING (name)
ORDER BY r.engine DESC, a.attempt_id

-- name: experts
-- The experts' model in one process, with every expert cut in two, and with half of the experts in
-- each process: the answers to one prompt, greedy, and whether they are that of the one process.
SELECT a.name, a.asks, a.outcome,
    CASE WHEN a.outcome = 'answered' THEN left(a.answer, 60) END AS answer,
    CASE WHEN a.outcome <> 'answered' THEN 'no answer'
        WHEN a.answer = (SELECT answer FROM attempt WHERE name = 'moe-one') THEN 'the same'
        ELSE 'another' END AS against_one
FROM attempt a WHERE a.name LIKE 'moe-%'
ORDER BY list_position(['moe-one', 'moe-tp', 'moe-ep'], a.name)

-- name: answers
-- Prompts of `load` that the plain engine and another layout both answered, in the same repeat: how
-- many greedy answers are the same to the letter.
SELECT o.variant, count(*) AS prompts, count(*) FILTER (o.output_text = p.output_text) AS same
FROM measured_request o JOIN measured_request p USING (prompt_hash, repeat, in_flight, sweep)
WHERE o.sweep = 'load' AND p.variant = 'vllm' AND o.variant <> 'vllm'
    AND o.error IS NULL AND p.error IS NULL
GROUP BY o.variant
ORDER BY list_position(['vllm-threads', 'vllm-tp', 'vllm-pp', 'vllm-dp'], o.variant)

-- name: sglang_answers
-- Layouts of SGLang that answered the one prompt, on the same model, and how many different greedy
-- answers they gave.
SELECT count(*) AS layouts, count(DISTINCT answer) AS answers
FROM attempt JOIN engine_run USING (run_id)
WHERE engine = 'sglang' AND outcome = 'answered' AND model_id = 'made-dense'

-- name: model_fit
-- The plain engine on one core: decode steps of n requests take base + per_request * n, a line
-- through one and eight requests, ms; and the bare talk of a step by shared memory, likewise. kept:
-- what a second core does not shorten, from the step of eight requests with two threads.
WITH step AS (
    SELECT s.decode_requests AS n, c.repeat, median(s.took_ms) AS took_ms
    FROM scheduler_step s JOIN cell c USING (cell_id)
    WHERE c.variant = 'vllm' AND c.sweep = 'load' AND c.verdict = 'VALID' AND s.prefill_tokens = 0
        AND s.decode_requests = c.in_flight GROUP BY ALL),
threads AS (
    SELECT c.repeat, median(s.took_ms) AS took_ms FROM scheduler_step s JOIN cell c USING (cell_id)
    WHERE c.variant = 'vllm-threads' AND c.sweep = 'load' AND c.verdict = 'VALID'
        AND s.prefill_tokens = 0 AND s.decode_requests = 8 GROUP BY c.repeat),
shape AS (
    SELECT 2 * any_value((config->>'num_hidden_layers')::INT) + 1 AS all_reduces
    FROM model WHERE model_id = 'made-dense'),
talk AS (
    SELECT k.batch AS n, all_reduces * median(k.took_ns) FILTER (k.op = 'all_reduce') / 1e6
        + median(k.took_ns) FILTER (k.op = 'all_gather') / 1e6 AS talk_ms
    FROM kernel_sample k JOIN job j USING (job_id), shape
    WHERE j.fault IS NULL AND k.backend = 'shm' AND k.batch IN (1, 8) GROUP BY k.batch, all_reduces)
SELECT regr_intercept(took_ms, n) AS base_ms, regr_slope(took_ms, n) AS per_request_ms,
    2 * (SELECT avg(took_ms) FROM threads) - max(took_ms) FILTER (n = 8) AS kept_ms,
    (SELECT regr_intercept(talk_ms, n) FROM talk) AS talk_base_ms,
    (SELECT regr_slope(talk_ms, n) FROM talk) AS talk_request_ms
FROM (SELECT n, avg(took_ms) AS took_ms FROM step GROUP BY n)

-- name: model_points
-- Decode steps of every layout but the pipeline's, by requests in flight: the recorded step of all
-- of them; of two copies that of half of them.
WITH step AS (
    SELECT c.variant, c.in_flight, s.decode_requests, c.repeat, median(s.took_ms) AS took_ms
    FROM scheduler_step s JOIN cell c USING (cell_id)
    WHERE c.sweep IN ('load', 'half') AND c.verdict = 'VALID' AND s.prefill_tokens = 0
        AND s.decode_requests = CASE WHEN c.variant = 'vllm-dp' AND c.in_flight > 1
            THEN c.in_flight // 2 ELSE c.in_flight END
    GROUP BY ALL)
SELECT CASE variant WHEN 'vllm' THEN 'one core' WHEN 'vllm-threads' THEN 'two threads'
        WHEN 'vllm-tp' THEN 'tensor parallel' ELSE 'two copies' END AS layout,
    in_flight, CASE WHEN variant = 'vllm' AND in_flight IN (1, 8)
        OR variant = 'vllm-threads' AND in_flight = 8 THEN 'fit' ELSE 'check' END AS part,
    avg(took_ms) AS step_ms
FROM step WHERE variant <> 'vllm-pp' GROUP BY variant, in_flight ORDER BY variant, in_flight

-- name: pool_points
-- The recorded pools.
WITH pool AS (
    SELECT run_id, count(DISTINCT labels) AS copies,
        sum(regexp_extract(labels, '(^|,)kv_cache_size_tokens=([0-9]+)', 2)::BIGINT) AS pool_tokens
    FROM (SELECT DISTINCT run_id, labels FROM engine_metric WHERE name = 'vllm:cache_config_info')
    GROUP BY run_id)
SELECT CASE r.variant WHEN 'vllm' THEN 'one copy' WHEN 'vllm-tp' THEN 'tensor parallel'
        WHEN 'vllm-pp' THEN 'pipeline' ELSE 'two copies' END AS layout, 1 AS memory_gib,
    12 AS layers, 4 AS kv_heads, 'check' AS part, max(p.pool_tokens)::BIGINT AS pool_tokens
FROM pool p JOIN engine_run r USING (run_id)
WHERE r.variant IN ('vllm', 'vllm-tp', 'vllm-pp', 'vllm-dp') GROUP BY r.variant ORDER BY r.variant

-- name: rejected
-- The cells that no figure uses, and why.
SELECT variant, sweep, in_flight, repeat, unnest(reasons) AS reason
FROM cell WHERE verdict = 'INVALID' ORDER BY sweep, variant, repeat

-- name: rejected_count
-- How many cells are INVALID.
SELECT count(*) AS cells FROM cell WHERE verdict = 'INVALID'
