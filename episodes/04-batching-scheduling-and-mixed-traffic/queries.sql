-- Queries of Episode 04. A step is a row of the view scheduler_step: one line of the engine's log.
-- budget_tokens is read from the command line: --max-num-batched-tokens of vLLM,
-- --chunked-prefill-size of SGLang. A long prompt is one longer than the cell's prompt_tokens.

-- name: settings
-- The variants, as their command lines say; flags are those of the declaration.
SELECT variant, any_value(engine) AS engine, any_value(version) AS version,
    any_value(TRY_CAST(argv[1 + list_position(argv,
        CASE engine WHEN 'vllm' THEN '--max-num-batched-tokens' ELSE '--chunked-prefill-size' END)]
        AS INTEGER)) AS budget_tokens,
    any_value(CAST(argv[1 + list_position(argv,
        CASE engine WHEN 'vllm' THEN '--max-num-seqs' ELSE '--max-running-requests' END)]
        AS INTEGER)) AS most_running,
    any_value(array_to_string(regexp_extract_all(array_to_string(argv, ' '),
        '--(long-prefill-token-threshold|no-enable-chunked-prefill|enable-mixed-chunk|prefill-decode-interval|scheduling-policy|schedule-policy)( \w+)?'),
        ' ')) AS other,
    count(DISTINCT run_id) AS starts, count(*) AS cells,
    count(*) FILTER (verdict = 'VALID') AS valid,
    split_part(any_value(probe_answer), chr(10), 1) AS answer
FROM engine_run JOIN (SELECT run_id, verdict FROM cell) USING (run_id)
GROUP BY variant ORDER BY engine DESC, starts DESC, budget_tokens, variant

-- name: fit
-- What a step costs, from the cells at low load alone: per engine, a line through the medians of
-- the time of a step at each number of tokens that it held. ms, and ms a token.
SELECT engine, regr_intercept(took_ms, tokens) AS base_ms, regr_slope(took_ms, tokens) AS per_token_ms,
    count(*) AS sizes, sum(steps)::BIGINT AS steps
FROM (
    SELECT s.engine, s.prefill_tokens + s.decode_tokens AS tokens, median(s.took_ms) AS took_ms,
        count(*) AS steps
    FROM scheduler_step s JOIN cell c USING (cell_id)
    WHERE c.sweep = 'alone' AND c.verdict = 'VALID' AND s.t_ns > c.measured_ns GROUP BY ALL)
GROUP BY engine ORDER BY engine

-- name: stall
-- The long prompt among running answers, by variant. stall_ms: the longest gap between two tokens
-- of an answer that was being written, of the gaps that touch the time from the long prompt's
-- sending to its first token; gaps: how many there are in a repeat, at least. calm_ms: the median
-- gap before. long_ms, behind_ms: TTFT of the long prompt and of the short one sent after it. steps:
-- those that computed a part of a prompt in that time. Of one value a repeat the median over the
-- repeats, which one disturbed repeat does not move, the least and the most. due: by the formula of
-- model.py.
WITH long AS (
    SELECT cell_id, engine, variant, repeat, asked_prompt_tokens AS size, scheduled_ns, sent_ns,
        first_token_ns
    FROM measured_request
    WHERE sweep LIKE 'stall%' AND asked_prompt_tokens > prompt_tokens AND error IS NULL),
setting AS (
    SELECT variant, any_value(TRY_CAST(argv[1 + list_position(argv, CASE engine
            WHEN 'vllm' THEN '--max-num-batched-tokens' ELSE '--chunked-prefill-size' END)] AS INTEGER))
            AS budget,
        any_value(engine = 'vllm' OR list_contains(argv, '--enable-mixed-chunk')) AS mixes,
        any_value(list_contains(argv, '--prefill-decode-interval')) AS rounds,
        max(CASE WHEN list_contains(argv, '--long-prefill-token-threshold') THEN TRY_CAST(
            argv[1 + list_position(argv, '--long-prefill-token-threshold')] AS INTEGER) END) AS cap
    FROM engine_run GROUP BY variant),
fit AS (
    SELECT engine, regr_intercept(took_ms, tokens) AS base_ms, regr_slope(took_ms, tokens) AS per_token_ms
    FROM (
        SELECT s.engine, s.prefill_tokens + s.decode_tokens AS tokens, median(s.took_ms) AS took_ms
        FROM scheduler_step s JOIN cell c USING (cell_id)
        WHERE c.sweep = 'alone' AND c.verdict = 'VALID' AND s.t_ns > c.measured_ns GROUP BY ALL)
    GROUP BY engine),
other AS (
    SELECT l.cell_id, count(*) FILTER (r.scheduled_ns < l.scheduled_ns) AS running,
        avg((r.first_token_ns - r.sent_ns) / 1e6) FILTER (r.scheduled_ns > l.scheduled_ns) AS behind_ms
    FROM long l JOIN request r USING (cell_id) WHERE r.phase = 'measured' GROUP BY l.cell_id),
gap AS (
    SELECT cell_id, max(gap_ms) FILTER (during) AS stall_ms, count(*) FILTER (during) AS gaps,
        median(gap_ms) FILTER (before) AS calm_ms
    FROM (
        SELECT k.cell_id, (k.arrival_ns - k.before_ns) / 1e6 AS gap_ms, k.arrival_ns <= l.sent_ns AS before,
            k.arrival_ns > l.sent_ns AND k.before_ns < l.first_token_ns AS during
        FROM long l JOIN (
            SELECT *, lag(arrival_ns) OVER (PARTITION BY cell_id, request_id ORDER BY chunk_index)
                AS before_ns FROM chunk) k USING (cell_id)
        JOIN request r ON (r.cell_id, r.request_id) = (k.cell_id, k.request_id)
        WHERE r.scheduled_ns < l.scheduled_ns)
    GROUP BY cell_id),
step AS (
    SELECT l.cell_id, count(*) AS steps, max(s.prefill_tokens) AS most_tokens
    FROM long l JOIN scheduler_step s ON s.cell_id = l.cell_id AND s.prefill_tokens > 0
        AND s.t_ns > l.sent_ns AND s.t_ns - 5e5 * s.took_ms < l.first_token_ns
    GROUP BY l.cell_id),
made AS (
    SELECT l.*, s.*, o.*, g.*, p.steps AS steps_seen, p.most_tokens,
        (l.first_token_ns - l.sent_ns) / 1e6 AS long_ms,
        CASE WHEN mixes THEN running ELSE 0 END AS beside,
        least(budget - beside, coalesce(cap, budget)) AS share,
        ceil(size / share)::INTEGER AS steps_due,
        base_ms * steps_due + per_token_ms * (size + steps_due * beside) AS long_due_ms,
        base_ms + per_token_ms * (least(share, size) + beside) AS first_ms,
        base_ms + per_token_ms * running AS decode_ms,
        CASE WHEN mixes THEN first_ms WHEN rounds THEN first_ms + decode_ms
            ELSE long_due_ms + decode_ms END AS stall_due_ms
    FROM long l JOIN setting s USING (variant) JOIN other o USING (cell_id) JOIN gap g USING (cell_id)
    JOIN step p USING (cell_id) JOIN fit f USING (engine))
SELECT engine, variant, any_value(CASE WHEN engine = 'vllm' THEN
        CASE WHEN cap IS NULL THEN 'vLLM' ELSE 'vLLM, prompts capped' END
        ELSE CASE WHEN mixes THEN 'SGLang, mixed' WHEN rounds THEN 'SGLang, interval' ELSE 'SGLang' END END)
        AS policy, 'check' AS part,
    any_value(budget) AS budget_tokens, any_value(size) AS prompt_tokens, any_value(running) AS running,
    count(*) AS repeats, median(calm_ms) AS calm_ms, any_value(decode_ms) AS calm_due_ms,
    median(stall_ms) AS stall_ms, min(stall_ms) AS stall_low_ms, max(stall_ms) AS stall_high_ms,
    any_value(stall_due_ms) AS stall_due_ms, min(gaps) AS gaps,
    median(long_ms) AS long_ms, min(long_ms) AS long_low_ms, max(long_ms) AS long_high_ms,
    any_value(long_due_ms) AS long_due_ms,
    median(behind_ms) AS behind_ms, min(behind_ms) AS behind_low_ms, max(behind_ms) AS behind_high_ms,
    min(steps_seen) AS steps, max(steps_seen) AS steps_most, any_value(steps_due) AS steps_due,
    max(most_tokens) AS most_tokens,
    min(min(gaps)) OVER () AS gaps_fewest, max(max(gaps)) OVER () AS gaps_most, 662 AS gaps_for_p99,
    count(*) OVER () AS variants,
    sum((min(steps_seen) <> any_value(steps_due) OR max(steps_seen) <> any_value(steps_due))::INT)
        OVER ()::BIGINT AS variants_off
FROM made GROUP BY engine, variant ORDER BY engine DESC, budget_tokens, variant

-- name: pieces
-- Full steps of the long prompt at the tiny budget: the mean time of its first three and of its last
-- three, over the repeats of the stall.
SELECT avg(took_ms) FILTER (nth <= 3) AS first_ms, avg(took_ms) FILTER (nth > n - 3) AS last_ms,
    count(DISTINCT cell_id) AS repeats
FROM (
    SELECT s.cell_id, s.took_ms, row_number() OVER (PARTITION BY s.cell_id ORDER BY s.t_ns) AS nth,
        count(*) OVER (PARTITION BY s.cell_id) AS n
    FROM measured_request l JOIN scheduler_step s ON s.cell_id = l.cell_id AND s.prefill_requests = 1
        AND s.t_ns > l.sent_ns AND s.t_ns - 5e5 * s.took_ms < l.first_token_ns
    WHERE l.variant = 'vllm-tiny' AND l.sweep = 'stall' AND l.asked_prompt_tokens > l.prompt_tokens)

-- name: timeline_steps
-- The stall of the first repeat, step by step: when each step began and ended, s from the sending of
-- the long prompt, and the tokens that it computed.
SELECT l.engine, l.variant, round((s.t_ns - 1e6 * s.took_ms - l.sent_ns) / 1e9, 3) AS from_s,
    round((s.t_ns - l.sent_ns) / 1e9, 3) AS to_s, s.prefill_tokens, s.decode_tokens
FROM (
    SELECT cell_id, engine, variant, sent_ns, first_token_ns FROM measured_request
    WHERE sweep LIKE 'stall%' AND repeat = 1 AND asked_prompt_tokens > prompt_tokens) l
JOIN scheduler_step s USING (cell_id)
WHERE s.t_ns > l.sent_ns - 300000000 AND s.t_ns - 1e6 * s.took_ms < l.first_token_ns + 600000000
ORDER BY l.engine DESC, l.variant, s.t_ns

-- name: timeline_tokens
-- The same time at the client: arrivals of tokens, s from the sending of the long prompt. lane: the
-- answers that were being written from 1, above them the long prompt and the short one behind it.
SELECT l.engine, l.variant, CASE WHEN r.scheduled_ns < l.scheduled_ns THEN 'running'
        WHEN r.request_id = l.request_id THEN 'long' ELSE 'behind' END AS role,
    dense_rank() OVER (PARTITION BY l.variant ORDER BY r.request_id) AS lane,
    round((k.arrival_ns - l.sent_ns) / 1e9, 3) AS at_s
FROM (
    SELECT cell_id, engine, variant, request_id, scheduled_ns, sent_ns, first_token_ns
    FROM measured_request
    WHERE sweep LIKE 'stall%' AND repeat = 1 AND asked_prompt_tokens > prompt_tokens) l
JOIN measured_request r USING (cell_id) JOIN chunk k ON (k.cell_id, k.request_id) = (r.cell_id, r.request_id)
WHERE k.arrival_ns > l.sent_ns - 300000000 AND k.arrival_ns < l.first_token_ns + 600000000
ORDER BY l.engine DESC, l.variant, lane, at_s

-- name: traffic
-- Every kind of traffic by variant. tokens_per_s counts prompt and output tokens. TTFT: the median of
-- the short and of the long prompts of a cell; ITL: its median and its largest. Means over the
-- repeats of one value a repeat; 95 % Student-t intervals from four repeats on.
WITH answer AS (
    SELECT cell_id, any_value(engine) AS engine, any_value(variant) AS variant, any_value(sweep) AS sweep,
        any_value(in_flight) AS in_flight,
        median((first_token_ns - sent_ns) / 1e6) FILTER (asked_prompt_tokens <= prompt_tokens) AS short_ms,
        median((first_token_ns - sent_ns) / 1e6) FILTER (asked_prompt_tokens > prompt_tokens) AS long_ms,
        sum(server_prompt_tokens + output_tokens) AS tokens
    FROM measured_request WHERE sweep IN ('alone', 'short', 'mix-90-10', 'mix-50-50', 'long')
        AND error IS NULL GROUP BY cell_id),
gap AS (
    SELECT cell_id, median(itl_ms) AS itl_ms, max(itl_ms) AS itl_max_ms,
        CASE WHEN supports(0.9, count(*)) THEN quantile_cont(itl_ms, 0.9) END AS itl_p90_ms
    FROM itl GROUP BY cell_id)
SELECT a.engine, a.variant, a.sweep, a.in_flight, count(*) AS repeats,
    avg(tokens / measured_s) AS tokens_per_s,
    CASE WHEN count(*) > 3 THEN low95(tokens / measured_s) END AS tokens_low_per_s,
    CASE WHEN count(*) > 3 THEN high95(tokens / measured_s) END AS tokens_high_per_s,
    avg(output_tok_per_s) AS output_tok_per_s,
    avg(short_ms) AS short_ms, avg(long_ms) AS long_ms,
    avg(itl_ms) AS itl_ms, avg(itl_p90_ms) AS itl_p90_ms, avg(itl_max_ms) AS itl_max_ms
FROM answer a JOIN gap g USING (cell_id) JOIN outcome o USING (cell_id)
GROUP BY a.engine, a.variant, a.sweep, a.in_flight
ORDER BY list_position(['alone', 'short', 'mix-90-10', 'mix-50-50', 'long'], a.sweep), a.engine DESC, a.variant

-- name: step_sizes
-- What the steps held, by variant and traffic, over all repeats: tokens of a step, how many steps
-- computed prompts and answers together, and tokens per second of stepping.
SELECT s.engine, c.variant, c.sweep, count(*) AS steps, avg(prefill_tokens + decode_tokens) AS mean_tokens,
    max(prefill_tokens + decode_tokens) AS most_tokens, max(prefill_tokens) AS most_prefill_tokens,
    max(prefill_requests) AS most_prompts,
    100 * avg((prefill_tokens > 0 AND decode_tokens > 0)::INT) AS mixed_percent,
    median(took_ms) AS took_ms, max(took_ms) AS longest_ms,
    1000 * sum(prefill_tokens + decode_tokens) / sum(took_ms) AS tokens_per_s
FROM scheduler_step s JOIN cell c USING (cell_id)
WHERE c.verdict = 'VALID' AND s.t_ns > c.measured_ns
    AND c.sweep IN ('alone', 'short', 'mix-90-10', 'mix-50-50', 'long')
GROUP BY s.engine, c.variant, c.sweep
ORDER BY list_position(['alone', 'short', 'mix-90-10', 'mix-50-50', 'long'], c.sweep), s.engine DESC, c.variant

-- name: counted
-- The fields of the log added up over each cell, warm-up included, against what the client was told
-- (usage) and what the engine's own counters gained. Of an answer of n tokens n - 1 are decoded: the
-- first comes from the step that ends the prompt.
WITH log AS (
    SELECT cell_id, sum(prefill_tokens) AS prompt, sum(decode_tokens) AS decoded, count(*) AS steps
    FROM scheduler_step GROUP BY cell_id),
told AS (
    SELECT cell_id, sum(prompt_tokens - coalesce(cached_tokens, 0)) AS prompt,
        sum(output_tokens) - count(*) AS decoded, count(*) AS answers FROM request GROUP BY cell_id),
counter AS (
    SELECT cell_id, sum(gained) FILTER (name LIKE '%prompt_tokens_total') AS prompt,
        sum(gained) FILTER (name LIKE '%generation_tokens_total') AS output
    FROM (
        SELECT cell_id, name, labels, max(value) - min(value) AS gained FROM engine_metric
        WHERE name IN ('vllm:prompt_tokens_total', 'vllm:generation_tokens_total',
            'sglang:prompt_tokens_total', 'sglang:generation_tokens_total') GROUP BY ALL)
    GROUP BY cell_id)
SELECT c.engine, CASE WHEN list_contains(r.argv, '--enable-mixed-chunk') THEN 'mixed'
        WHEN c.sweep = 'queue-shared' THEN 'cache on' ELSE '' END AS setting,
    count(*) AS cells, sum(l.steps)::BIGINT AS steps,
    sum(l.prompt)::BIGINT AS log_prompt, sum(t.prompt)::BIGINT AS told_prompt,
    sum(n.prompt)::BIGINT AS counter_prompt,
    count(*) FILTER (l.prompt = t.prompt) AS prompt_equal,
    sum(l.decoded)::BIGINT AS log_decoded, sum(t.decoded)::BIGINT AS told_decoded,
    sum(n.output - t.answers)::BIGINT AS counter_decoded,
    count(*) FILTER (l.decoded = t.decoded) AS decoded_equal
FROM cell c JOIN engine_run r USING (run_id) JOIN log l USING (cell_id) JOIN told t USING (cell_id)
JOIN counter n USING (cell_id)
WHERE c.verdict = 'VALID' GROUP BY ALL ORDER BY c.engine DESC, setting

-- name: iteration_counter
-- vLLM's histogram iteration_tokens_total against its log, in the stall cells: tokens per step
-- between two reads of /metrics by the histogram (gain of its sum over gain of its count), and by
-- the log the fullest single step. A value above the budget cannot be a step.
SELECT c.variant, any_value(TRY_CAST(r.argv[1 + list_position(r.argv, '--max-num-batched-tokens')]
        AS INTEGER)) AS budget_tokens,
    max(h.tokens / h.steps) AS histogram_most, any_value(s.most) AS log_most, count(*) AS reads
FROM (
    SELECT cell_id, total - lag(total) OVER w AS tokens, steps - lag(steps) OVER w AS steps
    FROM (
        SELECT cell_id, t_ns, max(value) FILTER (name LIKE '%_sum') AS total,
            max(value) FILTER (name LIKE '%_count') AS steps
        FROM engine_metric WHERE name LIKE 'vllm:iteration_tokens_total%' GROUP BY ALL)
    WINDOW w AS (PARTITION BY cell_id ORDER BY t_ns)) h
JOIN cell c USING (cell_id) JOIN engine_run r USING (run_id)
JOIN (
    SELECT x.variant, max(prefill_tokens + decode_tokens) AS most FROM scheduler_step
    JOIN cell x USING (cell_id) WHERE x.sweep LIKE 'stall%' GROUP BY x.variant) s ON s.variant = c.variant
WHERE c.sweep LIKE 'stall%' AND c.verdict = 'VALID' AND h.steps > 0
GROUP BY c.variant ORDER BY budget_tokens, c.variant

-- name: log_lines
-- One line of each kind, as the engine wrote it: in the first repeat's stall the first step of the
-- long prompt, the step after it without one, and the last summary line of vLLM.
WITH long AS (
    SELECT cell_id, run_id, variant, sent_ns, first_token_ns, ended_ns FROM measured_request
    WHERE sweep = 'stall' AND repeat = 1 AND asked_prompt_tokens > prompt_tokens),
line AS (
    SELECT l.run_id, l.t_ns, l.line, g.variant, g.sent_ns, g.ended_ns,
        CASE WHEN contains(line, 'Iteration(') AND NOT contains(line, ' 0 context requests')
                THEN '1 vLLM, a step with prompt tokens'
            WHEN contains(line, 'Iteration(') THEN '2 vLLM, a step without'
            WHEN contains(line, 'Avg prompt throughput') THEN '3 vLLM, summary of ten seconds'
            WHEN contains(line, 'Prefill batch') AND variant = 'sglang-mixed'
                THEN '6 SGLang, prefill that mixes'
            WHEN contains(line, 'Prefill batch') THEN '4 SGLang, prefill'
            WHEN contains(line, 'Decode batch') THEN '5 SGLang, decode' END AS kind
    FROM log_line l JOIN long g USING (run_id)
    WHERE variant IN ('vllm-small', 'sglang-small', 'sglang-mixed'))
SELECT kind[3:] AS kind, arg_min(line, t_ns) AS line
FROM line WHERE kind IS NOT NULL AND t_ns > sent_ns
    AND (t_ns < ended_ns OR contains(kind, 'summary')) AND NOT (variant = 'sglang-mixed' AND kind[1] = '5')
GROUP BY line.kind ORDER BY line.kind

-- name: kv_field
-- The KV field of the log while the four answers of the stall are written and nothing else runs: the
-- share, what it is a share of, and what that makes; and the tokens that the answers had then by
-- the client's count (prompt and output so far). Median over such steps of all repeats.
WITH step AS (
    SELECT s.run_id, s.cell_id, s.engine, s.t_ns, s.kv_used_frac, s.decode_requests
    FROM scheduler_step s JOIN cell c USING (cell_id)
    JOIN (SELECT cell_id, sent_ns FROM measured_request
        WHERE sweep = 'stall' AND asked_prompt_tokens > prompt_tokens) l USING (cell_id)
    WHERE s.prefill_tokens = 0 AND s.decode_requests = (SELECT count(*) FROM measured_request m
            WHERE m.cell_id = s.cell_id AND m.sent_ns < l.sent_ns) AND s.t_ns < l.sent_ns),
held AS (
    SELECT s.run_id, s.t_ns, any_value(s.engine) AS engine, any_value(s.kv_used_frac) AS frac,
        any_value(s.decode_requests) AS answers,
        sum(r.server_prompt_tokens) FILTER (k.chunk_index = 1) + count(*) AS tokens
    FROM step s JOIN chunk k ON k.cell_id = s.cell_id AND k.arrival_ns <= s.t_ns
    JOIN measured_request r ON (r.cell_id, r.request_id) = (k.cell_id, k.request_id)
    GROUP BY s.run_id, s.t_ns)
SELECT held.engine, median(answers) AS answers, median(frac) AS used_frac,
    median(r.kv_pool_tokens) AS pool_tokens, median(b.block_tokens) AS block_tokens,
    median(frac * (r.kv_pool_tokens - CASE r.engine WHEN 'vllm' THEN b.block_tokens ELSE 0 END))
        AS field_tokens,
    median(tokens) AS held_tokens, count(*) AS steps
FROM held JOIN engine_run r USING (run_id) JOIN cache_block b USING (run_id)
GROUP BY held.engine ORDER BY held.engine DESC

-- name: model_fit
-- The constants of the small model: those of `fit`, for each way of scheduling, and what one prompt
-- may take of a step (NULL: all that is left).
SELECT policy, base_ms, per_token_ms, cap_tokens
FROM (VALUES ('vLLM', 'vllm'), ('vLLM, prompts capped', 'vllm'), ('SGLang', 'sglang'),
    ('SGLang, mixed', 'sglang'), ('SGLang, interval', 'sglang')) p(policy, engine)
JOIN (
    SELECT engine, regr_intercept(took_ms, tokens) AS base_ms, regr_slope(took_ms, tokens) AS per_token_ms
    FROM (
        SELECT s.engine, s.prefill_tokens + s.decode_tokens AS tokens, median(s.took_ms) AS took_ms
        FROM scheduler_step s JOIN cell c USING (cell_id)
        WHERE c.sweep = 'alone' AND c.verdict = 'VALID' AND s.t_ns > c.measured_ns GROUP BY ALL)
    GROUP BY engine) f USING (engine)
LEFT JOIN (
    SELECT 'vLLM, prompts capped' AS policy, max(TRY_CAST(argv[1 + list_position(argv,
        '--long-prefill-token-threshold')] AS INTEGER)) AS cap_tokens FROM engine_run) c USING (policy)
ORDER BY policy

-- name: queue_order
-- A queue before two places, by the order of its requests. overtaken: pairs of which the one sent
-- later had its first token before the other. Where every second request is urgent, or is on the
-- other of two documents, TTFT of the two halves apart (by the place in the plan, odd and even).
WITH asked AS (
    SELECT m.cell_id, m.engine, m.variant, m.sweep, c.shared_tokens, m.sent_ns, m.first_token_ns,
        (m.request_id - c.warmup_requests) % 2 AS odd, m.cached_tokens
    FROM measured_request m JOIN cell c USING (cell_id)
    WHERE m.sweep LIKE 'queue%' AND m.error IS NULL),
pair AS (
    SELECT a.cell_id, count(*) AS pairs, count(*) FILTER (b.first_token_ns < a.first_token_ns) AS overtaken
    FROM asked a JOIN asked b ON b.cell_id = a.cell_id AND b.sent_ns > a.sent_ns
        AND b.sent_ns < a.first_token_ns
    GROUP BY a.cell_id)
SELECT engine, variant, sweep, shared_tokens, count(*) AS requests, any_value(pairs) AS pairs,
    any_value(overtaken) AS overtaken,
    median((first_token_ns - sent_ns) / 1e9) AS ttft_s,
    median((first_token_ns - sent_ns) / 1e9) FILTER (odd = 1) AS odd_s,
    median((first_token_ns - sent_ns) / 1e9) FILTER (odd = 0) AS even_s,
    sum(cached_tokens)::BIGINT AS cached_tokens
FROM asked JOIN pair USING (cell_id)
GROUP BY cell_id, engine, variant, sweep, shared_tokens ORDER BY engine DESC, sweep, shared_tokens

-- name: rejected
-- The cells that no figure uses, and why.
SELECT variant, sweep, repeat, unnest(reasons) AS reason
FROM cell WHERE verdict = 'INVALID' ORDER BY sweep, variant, repeat
