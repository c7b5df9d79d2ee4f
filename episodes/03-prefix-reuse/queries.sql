-- Episode 03. The views cached_prefix and cache_block hold the prediction; only VALID cells enter.
-- "Warm" is every request of a cell whose document another one of the cell had before it.

-- name: verdicts
-- Cells and verdicts, and what each engine answered before it was measured (first line).
SELECT c.variant, r.version, any_value(b.block_tokens) AS block_tokens,
    any_value(r.kv_pool_tokens) AS pool_tokens, count(*) AS cells,
    count(*) FILTER (c.verdict = 'VALID') AS valid,
    split_part(any_value(r.probe_answer), chr(10), 1) AS answer
FROM cell c JOIN engine_run r USING (run_id) JOIN cache_block b USING (run_id)
GROUP BY c.variant, r.version ORDER BY c.variant DESC

-- name: agreement
-- Cached tokens of every measured request against the prediction, by sweep and engine: how many
-- requests had just that many, fewer, or more; and what it comes to in tokens.
SELECT sweep, engine, max(in_flight) AS most_in_flight, count(*) AS requests,
    count(*) FILTER (cached_tokens = predicted_tokens) AS equal,
    count(*) FILTER (cached_tokens < predicted_tokens) AS fewer,
    count(*) FILTER (cached_tokens > predicted_tokens) AS more,
    sum(predicted_tokens)::BIGINT AS predicted, sum(cached_tokens)::BIGINT AS cached
FROM cached_prefix GROUP BY sweep, engine
ORDER BY max(in_flight) > 1 OR sweep IN ('kept', 'evicted'), sweep, engine DESC

-- name: agreement_total
-- The same over the requests that came one at a time, after a reset, into a pool that held the
-- whole cell.
SELECT count(*) AS plain, count(*) FILTER (cached_tokens = predicted_tokens) AS plain_equal
FROM cached_prefix WHERE in_flight = 1 AND sweep NOT IN ('kept', 'evicted')

-- name: staircase
-- One document, 0 to 100 % of the prompt: what the warm requests took from the cache.
SELECT engine, shared_tokens, server_prompt_tokens AS prompt_tokens, predicted_tokens, cached_tokens,
    100.0 * shared_tokens / server_prompt_tokens AS shared_percent,
    100.0 * cached_tokens / server_prompt_tokens AS cached_percent, count(*) AS requests
FROM cached_prefix WHERE sweep = 'ratio' AND round > 1
GROUP BY ALL ORDER BY engine DESC, shared_tokens

-- name: stairs
-- Computed, of no request: what a cache serves by the tokens shared, for the prompt of the sweep
-- `ratio`: with the blocks of this recording, and with blocks of 16 tokens, vLLM's default on a GPU.
SELECT block_tokens, 100.0 * shared_tokens / prompt_tokens AS shared_percent,
    100.0 * (least(shared_tokens, prompt_tokens - 1) // block_tokens * block_tokens) / prompt_tokens
        AS cached_percent
FROM (SELECT DISTINCT block_tokens FROM cached_prefix UNION SELECT 16),
    (SELECT DISTINCT prompt_tokens FROM cached_prefix WHERE sweep = 'ratio'),
    (SELECT unnest(range(0, 16385)) AS shared_tokens)
WHERE shared_tokens <= prompt_tokens AND (shared_tokens = prompt_tokens
    OR CASE block_tokens WHEN 1 THEN shared_tokens IN (0, prompt_tokens - 1)
        ELSE shared_tokens % block_tokens = 0 END)
ORDER BY block_tokens DESC, shared_tokens

-- name: boundary
-- The second request at and around the ends of blocks: tokens from the cache, predicted and as each
-- engine reported (several values where requests differ). Whole: both prompts are the same.
SELECT server_prompt_tokens AS prompt_tokens, shared_prefix_tokens AS shared_tokens,
    any_value(predicted_tokens) FILTER (engine = 'vllm') AS vllm_predicted,
    string_agg(DISTINCT cached_tokens::VARCHAR, ', ') FILTER (engine = 'vllm') AS vllm_cached,
    any_value(predicted_tokens) FILTER (engine = 'sglang') AS sglang_predicted,
    string_agg(DISTINCT cached_tokens::VARCHAR, ', ') FILTER (engine = 'sglang') AS sglang_cached,
    count(*) AS requests
FROM cached_prefix WHERE sweep IN ('boundary', 'whole') AND round = 2
GROUP BY ALL ORDER BY prompt_tokens, shared_tokens

-- name: position
-- Where the shared part stands. Warm requests: tokens from the cache, and TTFT p50: the mean over
-- repeats of the median within a repeat, with its 95 % Student-t interval, ms.
WITH repeat_of AS (
    SELECT p.engine, p.sweep, p.repeat, p.shared_at, p.shared_tokens,
        p.server_prompt_tokens AS prompt_tokens, p.predicted_tokens, p.cached_tokens,
        median(t.from_sent_ms) AS ttft_ms
    FROM cached_prefix p JOIN ttft t USING (cell_id, request_id)
    WHERE p.round > 1 AND (p.sweep IN ('id-first', 'id-last', 'shared-last')
        OR p.sweep = 'ratio' AND p.shared_tokens IN (0, 256))
    GROUP BY ALL)
SELECT engine, sweep, shared_tokens, prompt_tokens, shared_at, predicted_tokens, cached_tokens,
    avg(ttft_ms) AS ttft_ms, low95(ttft_ms) AS low_ms, high95(ttft_ms) AS high_ms
FROM repeat_of GROUP BY ALL ORDER BY engine DESC, shared_tokens, shared_at

-- name: ratio_ttft
-- TTFT against the tokens that are left to compute. The line base + per token * tokens is laid, in
-- each repeat, through the warm medians of nothing shared and of everything shared; between them it
-- is a prediction. Mean over repeats with 95 % Student-t intervals; gap: recorded over predicted, - 1.
WITH warm AS (
    SELECT p.engine, p.repeat, p.shared_tokens, avg(p.server_prompt_tokens - p.cached_tokens) AS tokens,
        median(t.from_sent_ms) AS ttft_ms, avg(e.from_sent_ms) AS e2e_ms
    FROM cached_prefix p JOIN ttft t USING (cell_id, request_id) JOIN e2e e USING (cell_id, request_id)
    WHERE p.sweep = 'ratio' AND p.round > 1 GROUP BY ALL),
ends AS (
    SELECT *, (cold_ms - warm_ms) / (cold_tokens - warm_tokens) AS per_token_ms FROM (
        SELECT engine, repeat, arg_min(ttft_ms, shared_tokens) AS cold_ms,
            arg_max(ttft_ms, shared_tokens) AS warm_ms, arg_min(tokens, shared_tokens) AS cold_tokens,
            arg_max(tokens, shared_tokens) AS warm_tokens, arg_min(e2e_ms, shared_tokens) AS cold_e2e_ms,
            min(shared_tokens) AS least, max(shared_tokens) AS most
        FROM warm GROUP BY ALL)),
told AS (
    SELECT w.*, e.cold_ms + e.per_token_ms * (w.tokens - e.cold_tokens) AS predicted_ms,
        e.cold_ms / w.ttft_ms AS ttft_times, e.cold_e2e_ms / w.e2e_ms AS rate_times,
        w.shared_tokens IN (e.least, e.most) AS fitted
    FROM warm w JOIN ends e USING (engine, repeat))
SELECT engine, shared_tokens, 100 * shared_tokens / max(shared_tokens) OVER () AS shared_percent,
    avg(tokens) AS computed_tokens, avg(ttft_ms) AS ttft_ms,
    low95(ttft_ms) AS low_ms, high95(ttft_ms) AS high_ms, avg(predicted_ms) AS predicted_ms, fitted,
    CASE WHEN NOT fitted THEN 100 * avg(ttft_ms / predicted_ms - 1) END AS gap_percent,
    CASE WHEN NOT fitted THEN 100 * low95(ttft_ms / predicted_ms - 1) END AS gap_low,
    CASE WHEN NOT fitted THEN 100 * high95(ttft_ms / predicted_ms - 1) END AS gap_high,
    avg(ttft_times) AS ttft_times, low95(ttft_times) AS times_low, high95(ttft_times) AS times_high,
    avg(1000 / e2e_ms) AS requests_per_s, avg(rate_times) AS rate_times,
    max(abs(100 * avg(ttft_ms / predicted_ms - 1))) OVER (PARTITION BY engine) AS worst_percent
FROM told GROUP BY engine, shared_tokens, fitted ORDER BY engine DESC, shared_tokens

-- name: eviction
-- Documents sent in turn, each as often: first round and later ones. Pool: what the engine says.
SELECT p.engine, p.sweep, p.documents, p.documents * p.prompt_tokens AS document_tokens,
    any_value(r.kv_pool_tokens) AS pool_tokens, p.round, count(*) AS requests,
    sum(p.predicted_tokens)::BIGINT AS endless_tokens, sum(p.cached_tokens)::BIGINT AS cached_tokens,
    100 * sum(p.cached_tokens) / sum(p.server_prompt_tokens) AS cached_percent,
    median(t.from_sent_ms) AS ttft_ms
FROM cached_prefix p JOIN engine_run r USING (run_id) JOIN ttft t USING (cell_id, request_id)
WHERE p.sweep IN ('fits', 'evicted') GROUP BY ALL ORDER BY p.engine DESC, p.documents, p.round

-- name: keys
-- One prompt, sent whole under several salts or adapters in turn: tokens from the cache.
SELECT sweep, nth, coalesce(salt, adapter, 'none') AS key,
    any_value(predicted_tokens) FILTER (engine = 'vllm') AS vllm_predicted,
    string_agg(DISTINCT cached_tokens::VARCHAR, ', ') FILTER (engine = 'vllm') AS vllm_cached,
    any_value(predicted_tokens) FILTER (engine = 'sglang') AS sglang_predicted,
    string_agg(DISTINCT cached_tokens::VARCHAR, ', ') FILTER (engine = 'sglang') AS sglang_cached
FROM cached_prefix WHERE sweep IN ('salt', 'adapter')
GROUP BY ALL ORDER BY sweep DESC, nth

-- name: together
-- Equal prompts, two at once. By place in the plan: tokens from the cache and when the first token
-- came, in each repeat; as_predicted: repeats with just the predicted tokens. Times count from when
-- the first request of the cell was sent, ms; sent: mean over repeats.
SELECT engine, nth, any_value(predicted_tokens) AS predicted_tokens,
    list(cached_tokens ORDER BY repeat) AS cached_tokens,
    count(*) FILTER (cached_tokens = predicted_tokens) AS as_predicted, count(*) AS repeats,
    avg(sent_ms) AS sent_ms, list(round(first_token_ms)::BIGINT ORDER BY repeat) AS first_token_ms
FROM (
    SELECT p.*, (r.sent_ns - min(r.sent_ns) OVER cell) / 1e6 AS sent_ms,
        (r.first_token_ns - min(r.sent_ns) OVER cell) / 1e6 AS first_token_ms
    FROM cached_prefix p JOIN request r USING (cell_id, request_id)
    WHERE p.sweep = 'together' WINDOW cell AS (PARTITION BY p.cell_id))
GROUP BY ALL ORDER BY engine DESC, nth

-- name: first_step
-- SGLang's log: the first prefill step of each cell of `together` after the warm-up, with its
-- prompts, the tokens that it computed and those that it took from the cache.
SELECT c.repeat, s.prefill_requests, s.prefill_tokens, s.cached_tokens
FROM scheduler_step s JOIN cell c USING (cell_id)
WHERE c.engine = 'sglang' AND c.sweep = 'together' AND c.verdict = 'VALID'
    AND s.prefill_tokens > 0 AND s.t_ns > c.measured_ns
QUALIFY row_number() OVER (PARTITION BY cell_id ORDER BY s.t_ns) = 1 ORDER BY c.repeat

-- name: one_step
-- The first requests of the fullest cell of knee-repeated, first repeat: tokens from the cache, and
-- when the first token came after the first request was sent, ms. Equal times: one step of the engine.
SELECT nth, (nth - 1) % documents + 1 AS document, any_value(predicted_tokens) FILTER (engine = 'vllm')
        AS vllm_predicted,
    any_value(cached_tokens) FILTER (engine = 'vllm') AS vllm_cached,
    any_value(first_token_ms) FILTER (engine = 'vllm') AS vllm_first_ms,
    any_value(predicted_tokens) FILTER (engine = 'sglang') AS sglang_predicted,
    any_value(cached_tokens) FILTER (engine = 'sglang') AS sglang_cached,
    any_value(first_token_ms) FILTER (engine = 'sglang') AS sglang_first_ms
FROM (
    SELECT p.*, (r.first_token_ns - min(r.sent_ns) OVER (PARTITION BY p.cell_id)) / 1e6 AS first_token_ms
    FROM cached_prefix p JOIN request r USING (cell_id, request_id)
    WHERE p.sweep = 'knee-repeated' AND p.repeat = 1
    QUALIFY p.in_flight = max(p.in_flight) OVER ())
WHERE nth <= in_flight GROUP BY ALL ORDER BY nth

-- name: knee
-- The same load sweep with new prompts and with repeated ones: output tokens a second, their ratio
-- within a repeat, and the median wait for the first token. fresh_each_ms: measured time over
-- requests. requests: in a cell. Intervals: 95 % Student-t over repeats.
WITH rate AS (
    SELECT o.engine, o.repeat, o.in_flight,
        any_value(o.output_tok_per_s) FILTER (o.sweep = 'knee-fresh') AS fresh,
        any_value(o.output_tok_per_s) FILTER (o.sweep = 'knee-repeated') AS repeated,
        any_value(1000 / o.requests_per_s) FILTER (o.sweep = 'knee-fresh') AS fresh_each_ms,
        max(o.requests) AS requests
    FROM outcome o WHERE o.verdict = 'VALID' AND o.sweep IN ('knee-fresh', 'knee-repeated')
    GROUP BY ALL HAVING fresh > 0 AND repeated > 0),
share AS (
    SELECT engine, in_flight, 100 * sum(cached_tokens) / sum(server_prompt_tokens) AS cached_percent
    FROM cached_prefix WHERE sweep = 'knee-repeated' GROUP BY ALL),
wait AS (
    SELECT engine, in_flight, max(p50_ms) FILTER (sweep = 'knee-fresh') AS fresh_ttft_ms,
        max(p50_ms) FILTER (sweep = 'knee-repeated') AS repeated_ttft_ms
    FROM ttft_p50 WHERE sweep IN ('knee-fresh', 'knee-repeated') GROUP BY ALL)
SELECT engine, in_flight, avg(fresh) AS fresh_tok_per_s, low95(fresh) AS fresh_low,
    high95(fresh) AS fresh_high, avg(repeated) AS repeated_tok_per_s, low95(repeated) AS repeated_low,
    high95(repeated) AS repeated_high, avg(repeated / fresh) AS times,
    low95(repeated / fresh) AS times_low, high95(repeated / fresh) AS times_high,
    any_value(cached_percent) AS cached_percent, any_value(fresh_ttft_ms) AS fresh_ttft_ms,
    any_value(repeated_ttft_ms) AS repeated_ttft_ms, avg(fresh_each_ms) AS fresh_each_ms,
    max(requests) AS requests, count(*) AS repeats
FROM rate JOIN share USING (engine, in_flight) JOIN wait USING (engine, in_flight)
GROUP BY engine, in_flight ORDER BY engine DESC, in_flight

-- name: knee_gain
-- What each doubling of the requests in flight brings to either curve: times the throughput, the
-- mean over repeats of the ratio within a repeat, with its 95 % Student-t interval.
WITH rate AS (
    SELECT engine, sweep, repeat, in_flight, output_tok_per_s AS rate,
        lag(output_tok_per_s) OVER w AS below, lag(in_flight) OVER w AS from_level
    FROM outcome WHERE verdict = 'VALID' AND sweep IN ('knee-fresh', 'knee-repeated')
    WINDOW w AS (PARTITION BY engine, sweep, repeat ORDER BY in_flight))
SELECT engine, sweep, from_level, in_flight, avg(rate / below) AS times, low95(rate / below) AS low,
    high95(rate / below) AS high
FROM rate WHERE below IS NOT NULL GROUP BY ALL ORDER BY engine DESC, sweep, in_flight

-- name: counters
-- Tokens from the cache in the answers' usage against what the engine's own counter gained between
-- the first and the last sample of a cell; warm-up requests are in both. cells_equal: cells in which
-- the two are the same. all: every cell of an engine.
WITH gained AS (
    SELECT m.cell_id, m.labels, arg_max(m.value, m.t_ns)
        - coalesce(max(m.value) FILTER (m.t_ns = f.t_ns), 0) AS tokens
    FROM engine_metric m JOIN (SELECT cell_id, min(t_ns) AS t_ns FROM scrape GROUP BY ALL) f
        USING (cell_id)
    WHERE m.name IN ('vllm:prefix_cache_hits_total', 'sglang:cached_tokens_total') GROUP BY ALL),
counter AS (SELECT cell_id, sum(tokens)::BIGINT AS tokens FROM gained GROUP BY ALL),
usage AS (SELECT cell_id, sum(cached_tokens)::BIGINT AS tokens FROM request GROUP BY ALL)
SELECT c.engine, coalesce(c.sweep, 'all') AS sweep, count(*) AS cells, sum(u.tokens)::BIGINT AS usage_tokens,
    sum(coalesce(g.tokens, 0))::BIGINT AS counter_tokens,
    count(*) FILTER (u.tokens = coalesce(g.tokens, 0)) AS cells_equal
FROM cell c JOIN usage u USING (cell_id) LEFT JOIN counter g USING (cell_id)
WHERE c.verdict = 'VALID' GROUP BY GROUPING SETS ((c.engine, c.sweep), (c.engine))
ORDER BY c.sweep NULLS LAST, c.engine DESC

-- name: reset_proof
-- Cells that begin with a document of which the same process had read some before. left: what a
-- cache that is never emptied and never full would hold of it (as much of the first document as this
-- cell and one before share, in whole blocks). found: what the first request took from the cache.
WITH opening AS (
    SELECT p.run_id, p.cell_id, p.engine, p.sweep, p.repeat, p.shared_tokens, p.block_tokens,
        p.server_prompt_tokens, p.cached_tokens, c.started_ns, c.reset_cache
    FROM cached_prefix p JOIN cell c USING (cell_id) WHERE p.nth = 1 AND p.shared_at = 'start'),
left_of AS (
    SELECT o.cell_id, max(least(o.shared_tokens, b.shared_tokens, o.server_prompt_tokens - 1)
        // o.block_tokens * o.block_tokens) AS tokens
    FROM opening o JOIN cell b ON b.run_id = o.run_id AND b.started_ns < o.started_ns
        AND b.shared_at = 'start' GROUP BY ALL)
SELECT o.engine, o.reset_cache, count(*) AS cells, min(l.tokens) AS left_least, max(l.tokens) AS left_most,
    count(*) FILTER (o.cached_tokens = 0) AS none_found, max(o.cached_tokens) AS found_most
FROM opening o JOIN left_of l USING (cell_id) WHERE l.tokens > 0
GROUP BY ALL ORDER BY o.engine DESC, o.reset_cache DESC

-- name: kept
-- The cells without a reset: the cell that the process served before, what of the first document it
-- read, and what the first request then found in the cache.
SELECT p.engine, p.repeat, b.sweep AS before,
    coalesce(b.shared_tokens, 0) AS before_shared, p.server_prompt_tokens AS prompt_tokens,
    least(coalesce(b.shared_tokens, 0), p.server_prompt_tokens - 1) // p.block_tokens * p.block_tokens
        AS left_tokens, p.cached_tokens
FROM cached_prefix p
JOIN (
    SELECT cell_id, lag(cell_id) OVER (PARTITION BY run_id ORDER BY started_ns) AS before_id FROM cell
) o USING (cell_id)
LEFT JOIN cell b ON b.cell_id = o.before_id
WHERE p.sweep = 'kept' AND p.nth = 1 ORDER BY p.engine DESC, p.repeat

-- name: model_fit
-- TTFT of requests that came one at a time: a part for each token that is computed, one for each
-- token of the prompt, cached or not, and a base. Three medians fix them. The first part is the slope
-- between nothing and everything shared in the prompt of `ratio`. A line by the prompt's length
-- through what is then left, there and for the repeated prompt of `knee-repeated`, gives the others.
WITH level AS (
    SELECT m.engine, m.server_prompt_tokens AS prompt_tokens,
        any_value(m.server_prompt_tokens - m.cached_tokens) AS computed_tokens,
        median(t.from_sent_ms) AS ttft_ms
    FROM measured_request m JOIN ttft t USING (cell_id, request_id)
    WHERE m.in_flight = 1 AND m.variant = m.engine AND m.sweep NOT IN ('evicted', 'kept')
    GROUP BY m.engine, m.server_prompt_tokens, coalesce(m.shared_prefix_tokens, 0)
    HAVING bool_or(m.sweep = 'ratio' AND m.shared_prefix_tokens IN (0, m.server_prompt_tokens)
        OR m.sweep = 'knee-repeated' AND m.shared_prefix_tokens = m.server_prompt_tokens)),
computed AS (
    SELECT engine, regr_slope(ttft_ms, computed_tokens) AS per_token_ms
    FROM level GROUP BY engine, prompt_tokens HAVING count(*) > 1)
SELECT engine, regr_intercept(ttft_ms - per_token_ms * computed_tokens, prompt_tokens) AS base_ms,
    regr_slope(ttft_ms - per_token_ms * computed_tokens, prompt_tokens) AS per_prompt_token_ms,
    any_value(per_token_ms) AS per_token_ms
FROM level JOIN computed USING (engine) GROUP BY engine ORDER BY engine

-- name: last_tokens
-- Requests that came alone and had at most eight tokens left to compute: their wait, by length of
-- prompt, with the least and the most, ms.
SELECT p.engine, p.server_prompt_tokens AS prompt_tokens,
    p.server_prompt_tokens - p.cached_tokens AS computed_tokens, count(*) AS requests,
    median(t.from_sent_ms) AS ttft_ms, min(t.from_sent_ms) AS least_ms, max(t.from_sent_ms) AS most_ms
FROM cached_prefix p JOIN ttft t USING (cell_id, request_id)
WHERE p.in_flight = 1 AND p.server_prompt_tokens - p.cached_tokens <= 8
GROUP BY ALL ORDER BY p.engine DESC, prompt_tokens

-- name: model_points
-- Every level, cold and warm, at which requests came one at a time, after a reset, into a pool that
-- held the cell: tokens from the cache, and the median TTFT where there are at least nine requests
-- (these levels stand first).
SELECT m.engine, b.block_tokens, m.server_prompt_tokens AS prompt_tokens,
    coalesce(m.shared_prefix_tokens, 0) AS shared_tokens,
    CASE WHEN bool_or(m.sweep = 'ratio' AND m.shared_prefix_tokens IN (0, m.server_prompt_tokens)
        OR m.sweep = 'knee-repeated' AND m.shared_prefix_tokens = m.server_prompt_tokens)
        THEN 'fit' ELSE 'check' END AS part,
    m.cached_tokens, CASE WHEN count(*) >= 9 THEN median(t.from_sent_ms) END AS ttft_ms
FROM measured_request m JOIN cache_block b USING (run_id) JOIN ttft t USING (cell_id, request_id)
WHERE m.in_flight = 1 AND m.variant = m.engine AND m.sweep NOT IN ('evicted', 'kept')
GROUP BY m.engine, b.block_tokens, m.server_prompt_tokens, coalesce(m.shared_prefix_tokens, 0),
    m.cached_tokens
ORDER BY ttft_ms IS NULL, engine DESC, prompt_tokens, shared_tokens

-- name: pool
-- The pool of each engine, tokens, and its block.
SELECT r.engine, max(r.kv_pool_tokens) AS pool_tokens, max(b.block_tokens) AS block_tokens
FROM engine_run r JOIN cache_block b USING (run_id)
WHERE r.variant = r.engine GROUP BY r.engine ORDER BY r.engine

-- name: pool_points
-- Documents in turn: of their prompt tokens after the first round, how many the cache gave, %.
SELECT engine, documents, prompt_tokens AS document_tokens, 'check' AS part,
    100 * sum(cached_tokens) / sum(server_prompt_tokens) AS cached_percent
FROM cached_prefix WHERE sweep IN ('fits', 'evicted') AND round > 1
GROUP BY ALL ORDER BY ALL

-- name: answers
-- Prompts that were asked with some of it in the cache and with none, or more, under one adapter and
-- for as long an answer: how many got the same text every time.
SELECT engine, count(*) AS prompts, sum(requests)::BIGINT AS requests,
    count(*) FILTER (texts = 1) AS same
FROM (
    SELECT engine, variant, prompt_hash, adapter, asked_output_tokens, count(*) AS requests,
        count(DISTINCT output_text) AS texts
    FROM measured_request WHERE error IS NULL
    GROUP BY ALL HAVING count(DISTINCT cached_tokens) > 1)
GROUP BY engine ORDER BY engine DESC

-- name: rejected
-- The cells that no figure uses, and why.
SELECT engine, sweep, coalesce(shared_tokens::VARCHAR || ' shared, ', '') || in_flight::VARCHAR
    || ' in flight' AS level, repeat, unnest(reasons) AS reason
FROM cell WHERE verdict = 'INVALID' ORDER BY sweep, level, engine, repeat

-- name: rejected_count
-- How many cells are INVALID.
SELECT count(*) AS cells FROM cell WHERE verdict = 'INVALID'
