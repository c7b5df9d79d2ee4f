-- One view a metric. Each comment gives the formula, the unit and what is left out.
-- Only measured requests of VALID cells enter a metric. Failed requests stay in every count.

CREATE OR REPLACE MACRO t975(df) AS CASE
    WHEN df < 1 THEN NULL
    WHEN df <= 30 THEN list_extract([
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
        2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
        2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]::DOUBLE[], df)
    ELSE 1.960::DOUBLE END;
-- The ends of the 95 % Student-t interval of a mean: for values that are one a repeat.
CREATE OR REPLACE MACRO low95(x) AS
    avg(x) - t975(count(x) - 1) * stddev_samp(x) / sqrt(count(x));
CREATE OR REPLACE MACRO high95(x) AS
    avg(x) + t975(count(x) - 1) * stddev_samp(x) / sqrt(count(x));

-- Whether n values bound their quantile q: chance that at most one lies above it is 1 % or less
-- (statistics.py has the source). It takes 64 for p90 and 662 for p99; a median is always given.
CREATE OR REPLACE MACRO supports(q, n) AS
    q <= 0.5 OR pow(q, n) + n * (1 - q) * pow(q, n - 1) <= 0.01;

CREATE OR REPLACE VIEW measured_request AS
SELECT
    c.engine, c.variant, c.sweep, c.repeat, c.load, c.in_flight, c.rate_per_s, c.capacity_frac, c.kind,
    c.extra, c.session_id, c.run_id, c.prompt_tokens, r.* EXCLUDE (prompt_tokens, phase, extra),
    r.prompt_tokens AS server_prompt_tokens, r.extra AS request_extra
FROM request r JOIN cell c USING (cell_id)
WHERE r.phase = 'measured' AND c.verdict = 'VALID';
COMMENT ON VIEW measured_request IS 'Measured requests of VALID cells, failed ones included, with the keys of their cell. prompt_tokens is the cell''s, asked_prompt_tokens the request''s own, server_prompt_tokens what the server counted; extra is the cell''s, request_extra the request''s own.';

CREATE OR REPLACE VIEW ttft AS
SELECT engine, variant, sweep, repeat, prompt_tokens, load, in_flight, rate_per_s, capacity_frac, kind, extra, cell_id, request_id,
    (first_token_ns - sent_ns) / 1e6 AS from_sent_ms,
    (first_token_ns - scheduled_ns) / 1e6 AS from_scheduled_ms,
    (first_answer_ns - sent_ns) / 1e6 AS answer_from_sent_ms,
    (first_answer_ns - scheduled_ns) / 1e6 AS answer_from_scheduled_ms
FROM measured_request WHERE error IS NULL;
COMMENT ON VIEW ttft IS 'Time to first token, ms. from_sent = first_token_ns - sent_ns; from_scheduled = first_token_ns - scheduled_ns; answer_*: the same to the first token of the answer, reasoning left out. A chunk that carries only a role is not a token. Left out: failed requests.';

CREATE OR REPLACE VIEW chunk AS
SELECT cell_id, request_id, chunk_index,
    first_token_ns + 1000 * sum(gap_us) OVER (
        PARTITION BY cell_id, request_id ORDER BY chunk_index)::BIGINT AS arrival_ns,
    tokens, shared
FROM (
    SELECT cell_id, request_id, first_token_ns, unnest(list_concat([0::UINTEGER], chunk_gap_us)) AS gap_us,
        unnest(range(1, len(chunk_gap_us) + 2)) AS chunk_index,
        unnest(chunk_tokens) AS tokens, unnest(chunk_shared) AS shared
    FROM measured_request WHERE error IS NULL);
COMMENT ON VIEW chunk IS 'One row per chunk that carries tokens: chunk_index from 1, arrival_ns on the monotonic clock (to the microsecond after the first), tokens in it (NULL where unknown), and whether it shared its read with a later one. Left out: failed requests.';

CREATE OR REPLACE VIEW inter_chunk AS
SELECT engine, variant, sweep, repeat, prompt_tokens, load, in_flight,
    rate_per_s, capacity_frac, kind, extra, cell_id, request_id, i + 1 AS chunk_index,
    chunk_gap_us[i] / 1e3 AS gap_ms,
    chunk_tokens[i + 1] AS tokens,
    chunk_shared[i] OR chunk_shared[i + 1] AS uncertain
FROM (
    SELECT *, unnest(range(1, len(chunk_gap_us) + 1)) AS i FROM measured_request
    WHERE error IS NULL);
COMMENT ON VIEW inter_chunk IS 'Inter-chunk latency, ms: arrival of a token-carrying chunk minus arrival of the one before it. chunk_index counts from 1, so the first row of a request is 2. uncertain: one of the two shared its read with another. Left out: failed requests.';

CREATE OR REPLACE VIEW itl AS
SELECT engine, variant, sweep, repeat, prompt_tokens, load, in_flight, rate_per_s, capacity_frac, kind, extra, cell_id, request_id,
    first_token + unnest(range(0, tokens)) AS token_index,
    gap_ms / tokens AS itl_ms
FROM (
    SELECT *, 1 + list_sum(all_tokens[1:chunk_index - 1])::BIGINT AS first_token FROM (
        SELECT g.*, m.chunk_tokens AS all_tokens
        FROM inter_chunk g JOIN measured_request m USING (cell_id, request_id)
        WHERE len(m.chunk_tokens) > 0 AND g.tokens > 0));
COMMENT ON VIEW itl IS 'Inter-token latency, ms: the gap before a chunk, shared equally by the tokens in it, one row a token after the first chunk. token_index counts the tokens of the answer from 1. Left out: failed requests, and requests whose tokens per chunk are unknown.';

CREATE OR REPLACE VIEW tpot AS
SELECT engine, variant, sweep, repeat, prompt_tokens, load, in_flight, rate_per_s, capacity_frac, kind, extra, cell_id, request_id,
    (last_token_ns - first_token_ns) / 1e6
        / nullif(output_tokens - coalesce(chunk_tokens[1], 1), 0) AS tpot_ms
FROM measured_request WHERE error IS NULL;
COMMENT ON VIEW tpot IS 'Time per output token, ms: (last_token_ns - first_token_ns) / (output tokens - tokens of the first chunk). One value a request. Where the tokens of the first chunk are unknown, it counts as one. Left out: failed requests; NULL where all tokens came in one chunk.';

CREATE OR REPLACE VIEW e2e AS
SELECT engine, variant, sweep, repeat, prompt_tokens, load, in_flight, rate_per_s, capacity_frac, kind, extra, cell_id, request_id,
    (last_token_ns - sent_ns) / 1e6 AS from_sent_ms,
    (last_token_ns - scheduled_ns) / 1e6 AS from_scheduled_ms
FROM measured_request WHERE error IS NULL;
COMMENT ON VIEW e2e IS 'End-to-end latency, ms: last token minus the time it was sent, or scheduled. Left out: failed requests.';

CREATE OR REPLACE VIEW outcome AS
SELECT *, 1 - failed / requests AS success_frac,
    output_tokens / nullif(measured_s, 0) AS output_tok_per_s,
    (requests - failed) / nullif(measured_s, 0) AS requests_per_s
FROM (
    SELECT c.engine, c.variant, c.sweep, c.repeat, c.prompt_tokens, c.load, c.in_flight,
        c.rate_per_s, c.capacity_frac, c.kind, c.extra, c.cell_id, c.verdict,
        (c.ended_ns - c.measured_ns) / 1e9 AS measured_s,
        count(*) AS requests,
        count(r.error) AS failed,
        coalesce(sum(r.output_tokens) FILTER (r.error IS NULL), 0)::BIGINT AS output_tokens
    FROM cell c JOIN request r ON r.cell_id = c.cell_id AND r.phase = 'measured'
    GROUP BY ALL);
COMMENT ON VIEW outcome IS 'One row a cell, INVALID ones included: requests sent, failed, share that succeeded, output tokens of the successful ones, and both per second of the measured phase, from its beginning to the end of its last request. Failed requests are in every denominator.';

CREATE OR REPLACE VIEW request_metric AS
SELECT engine, variant, sweep, repeat, prompt_tokens, load, in_flight, rate_per_s, capacity_frac, kind, extra,
    cell_id, request_id, prompt_hash, metric, value_ms
FROM (
    SELECT *,
        (first_token_ns - sent_ns) / 1e6 AS ttft,
        (first_token_ns - scheduled_ns) / 1e6 AS ttft_from_scheduled,
        (last_token_ns - sent_ns) / 1e6 AS e2e,
        (last_token_ns - scheduled_ns) / 1e6 AS e2e_from_scheduled,
        (last_token_ns - first_token_ns) / 1e6
            / nullif(output_tokens - coalesce(chunk_tokens[1], 1), 0) AS tpot
    FROM measured_request WHERE error IS NULL)
UNPIVOT (value_ms FOR metric IN (ttft, ttft_from_scheduled, e2e, e2e_from_scheduled, tpot));
COMMENT ON VIEW request_metric IS 'The request metrics in long form, ms: metric is ttft, ttft_from_scheduled, e2e, e2e_from_scheduled or tpot.';

CREATE OR REPLACE VIEW level_quantile AS
SELECT engine, variant, sweep, prompt_tokens, load, in_flight, rate_per_s, capacity_frac, kind, extra, metric, q,
    repeats, requests,
    CASE WHEN supports(q, fewest) THEN middle END AS value_ms,
    CASE WHEN supports(q, fewest) THEN low END AS low_ms,
    CASE WHEN supports(q, fewest) THEN high END AS high_ms
FROM (
    SELECT engine, variant, sweep, prompt_tokens, load, in_flight, rate_per_s, capacity_frac, kind, extra, metric, q,
        count(*) AS repeats, sum(n)::BIGINT AS requests, min(n) AS fewest,
        avg(value) AS middle, low95(value) AS low, high95(value) AS high
    FROM (
        SELECT engine, variant, sweep, prompt_tokens, load, in_flight, rate_per_s, capacity_frac, kind, extra, metric,
            repeat, n, unnest([0.5, 0.9, 0.99]::DOUBLE[]) AS q, unnest(quantiles) AS value
        FROM (
            SELECT engine, variant, sweep, prompt_tokens, load, in_flight, rate_per_s, capacity_frac, kind, extra, metric,
                repeat, count(*) AS n, quantile_cont(value_ms, [0.5, 0.9, 0.99]) AS quantiles
            FROM request_metric GROUP BY ALL))
    GROUP BY ALL);
COMMENT ON VIEW level_quantile IS 'Quantiles of a request metric at each load level (q is 0.5, 0.9 or 0.99), with their intervals: the mean over repeats of the quantile within a repeat, and a 95 % Student-t interval over the repeats (the repeat is the unit: requests of one repeat share an engine process and are not independent). NULL above the median where a repeat has too few requests for that quantile: p90 takes 64, p99 662. ms.';

CREATE OR REPLACE VIEW level_p50 AS
SELECT engine, variant, sweep, prompt_tokens, load, in_flight, rate_per_s, capacity_frac, kind, extra, metric,
    repeats, requests, value_ms AS p50_ms, low_ms, high_ms
FROM level_quantile WHERE q = 0.5;
COMMENT ON VIEW level_p50 IS 'Median of a request metric at each load level, with its 95 % interval as in level_quantile. ms.';

CREATE OR REPLACE VIEW ttft_p50 AS
SELECT engine, variant, sweep, prompt_tokens, load, in_flight, rate_per_s, capacity_frac, kind, extra,
    repeats, requests, p50_ms, low_ms, high_ms
FROM level_p50 WHERE metric = 'ttft';
COMMENT ON VIEW ttft_p50 IS 'TTFT p50 from the sent time at each load level, with its 95 % interval as in level_quantile. ms.';

CREATE OR REPLACE VIEW level_outcome AS
SELECT engine, variant, sweep, prompt_tokens, load, in_flight, rate_per_s, capacity_frac, kind, extra,
    count(*) AS repeats, sum(requests)::BIGINT AS requests, sum(failed)::BIGINT AS failed,
    avg(output_tok_per_s) AS output_tok_per_s,
    low95(output_tok_per_s) AS tok_low_per_s, high95(output_tok_per_s) AS tok_high_per_s,
    avg(requests_per_s) AS requests_per_s,
    low95(requests_per_s) AS requests_low_per_s, high95(requests_per_s) AS requests_high_per_s
FROM outcome WHERE verdict = 'VALID' GROUP BY ALL;
COMMENT ON VIEW level_outcome IS 'Throughput at each load level over its VALID cells: mean over repeats and 95 % Student-t interval over the repeats, of output tokens and of successful requests, per second of the measured phase.';

CREATE OR REPLACE VIEW steady_outcome AS
SELECT engine, variant, sweep, repeat, prompt_tokens, load, in_flight, rate_per_s, capacity_frac, kind, extra,
    cell_id, (any_value(to_ns) - any_value(from_ns)) / 1e9 AS window_s,
    count(*) AS requests, sum(output_tokens)::BIGINT AS output_tokens,
    sum(output_tokens) * 1e9 / (any_value(to_ns) - any_value(from_ns)) AS output_tok_per_s
FROM measured_request JOIN (
    SELECT cell_id, max(sent_ns) AS to_ns,
        list_sort(list(ended_ns))[coalesce(any_value(in_flight), 1)] AS from_ns
    FROM measured_request WHERE error IS NULL GROUP BY cell_id
) USING (cell_id)
WHERE error IS NULL AND ended_ns > from_ns AND ended_ns <= to_ns
GROUP BY ALL;
COMMENT ON VIEW steady_outcome IS 'Throughput without ramp-up and drain, a row a VALID cell: output tokens of the answers that ended after the first round of ends (as many as there are slots; in an open loop the first) and not after the last request was sent, per second between these two. In a closed loop whose slots end together, whole rounds are counted. outcome has the whole measured phase. Left out: failed requests, and cells without such an answer.';

CREATE OR REPLACE VIEW cache_block AS
SELECT r.run_id,
    max(CASE r.engine WHEN 'sglang' THEN coalesce(TRY_CAST(regexp_extract(
            array_to_string(r.argv, ' '), '.*--page-size[ =]([0-9]+)', 1) AS BIGINT), 1)
        ELSE CAST(regexp_extract(m.labels, '(^|,)block_size=([0-9]+)', 2) AS BIGINT) END)
        AS block_tokens
FROM engine_run r
LEFT JOIN engine_metric m ON m.run_id = r.run_id AND m.name = 'vllm:cache_config_info'
GROUP BY r.run_id;
COMMENT ON VIEW cache_block IS 'Tokens in a block of the KV cache, the least that a prefix cache can share, by run: vLLM says it in its metrics; SGLang''s is the last --page-size of its command line, else one, its default. NULL where neither holds.';

CREATE OR REPLACE VIEW cached_prefix AS
SELECT c.engine, c.variant, c.sweep, c.repeat, c.run_id, c.cell_id, c.prompt_tokens, c.in_flight,
    c.shared_tokens, c.shared_at, c.documents, r.request_id, r.request_id - c.warmup_requests AS nth,
    (r.request_id - c.warmup_requests - 1) // c.documents + 1 AS round, r.salt, r.adapter,
    r.prompt_tokens AS server_prompt_tokens, r.shared_prefix_tokens, b.block_tokens,
    least(r.shared_prefix_tokens, r.prompt_tokens - 1) // b.block_tokens * b.block_tokens
        AS predicted_tokens,
    r.cached_tokens
FROM request r JOIN cell c USING (cell_id) JOIN cache_block b USING (run_id)
WHERE c.verdict = 'VALID' AND r.error IS NULL AND r.shared_prefix_tokens IS NOT NULL
    AND c.added_tokens = 0;
COMMENT ON VIEW cached_prefix IS 'Prompt tokens served from the prefix cache, predicted and reported, a row a measured request of a sweep that shares text by plan. nth: its place in the cell; round: the requests that there have been for its document, this one included. predicted_tokens = floor(min(shared_prefix_tokens, prompt tokens - 1) / block) * block: whole blocks alone, and the last token is always computed. It holds for a cache that was emptied before the cell (cell.reset_cache, which is not looked at here), that is large enough, and in which the request before has ended. Left out: failed requests, INVALID cells, and cells whose server adds tokens to the prompts (a chat template), since these are shared as well.';

CREATE OR REPLACE VIEW engine_gauge AS
SELECT m.run_id, m.cell_id, m.t_ns, g.gauge, m.labels,
    CASE g.unit WHEN 'share' THEN m.value * (r.kv_pool_tokens - b.block_tokens) ELSE m.value END
        AS value
FROM engine_metric m
JOIN (VALUES
    ('vllm:num_requests_running', 'running', 'requests'),
    ('vllm:num_requests_waiting', 'waiting', 'requests'),
    ('vllm:kv_cache_usage_perc', 'kv_used_tokens', 'share'),
    ('sglang:num_running_reqs', 'running', 'requests'),
    ('sglang:num_queue_reqs', 'waiting', 'requests'),
    ('sglang:kv_used_tokens', 'kv_used_tokens', 'tokens'),
    ('emulator:num_requests_running', 'running', 'requests'),
    ('emulator:num_requests_waiting', 'waiting', 'requests')
) g(name, gauge, unit) USING (name)
JOIN engine_run r USING (run_id)
LEFT JOIN cache_block b USING (run_id);
COMMENT ON VIEW engine_gauge IS 'Engine gauges under common names: running and waiting requests, and kv_used_tokens, the tokens that the KV cache has room reserved for. vLLM gives a share of all blocks but one, which it keeps for itself: it is multiplied by the pool of its log less one block. An engine of several copies has a gauge of each, told apart by labels. A row where the value changed.';

CREATE OR REPLACE VIEW engine_stage AS
SELECT cell_id, run_id, stage,
    max(seconds) FILTER (part = 'sum') AS total_s,
    max(seconds) FILTER (part = 'count')::BIGINT AS requests
FROM (
    SELECT m.cell_id, m.run_id, s.stage, s.part, m.labels,
        arg_max(m.value, m.t_ns) - coalesce(max(m.value) FILTER (m.t_ns = f.t_ns), 0) AS seconds
    FROM engine_metric m
    JOIN (SELECT cell_id, min(t_ns) AS t_ns FROM scrape GROUP BY ALL) f USING (cell_id)
    JOIN (VALUES
        ('vllm:request_queue_time_seconds_sum', '', 'queue', 'sum'),
        ('vllm:request_queue_time_seconds_count', '', 'queue', 'count'),
        ('vllm:request_prefill_time_seconds_sum', '', 'prefill', 'sum'),
        ('vllm:request_prefill_time_seconds_count', '', 'prefill', 'count'),
        ('vllm:request_decode_time_seconds_sum', '', 'decode', 'sum'),
        ('vllm:request_decode_time_seconds_count', '', 'decode', 'count'),
        ('sglang:queue_time_seconds_sum', '', 'queue', 'sum'),
        ('sglang:queue_time_seconds_count', '', 'queue', 'count'),
        ('sglang:per_stage_req_latency_seconds_sum', 'stage=prefill_forward', 'prefill', 'sum'),
        ('sglang:per_stage_req_latency_seconds_count', 'stage=prefill_forward', 'prefill', 'count'),
        ('emulator:request_queue_time_seconds_sum', '', 'queue', 'sum'),
        ('emulator:request_queue_time_seconds_count', '', 'queue', 'count'),
        ('emulator:request_prefill_time_seconds_sum', '', 'prefill', 'sum'),
        ('emulator:request_prefill_time_seconds_count', '', 'prefill', 'count')
    ) s(name, label, stage, part) ON m.name = s.name AND contains(m.labels, s.label)
    GROUP BY ALL)
GROUP BY ALL;
COMMENT ON VIEW engine_stage IS 'The engine''s own account of where its requests spent their time, by cell: total seconds and number of requests (warm-up included) that its histograms gained between the first and the last sample of the cell. Where a histogram is kept by label, the label that gained most. Stages: queue, prefill and, where the engine gives it, decode.';

-- One step of the scheduler is one line of the log: vLLM's with --enable-logging-iteration-details,
-- SGLang's with --decode-log-interval 1.
CREATE OR REPLACE VIEW scheduler_step AS
WITH step AS (
    SELECT l.run_id, c.cell_id, l.t_ns, l.line, r.engine,
        list_contains(r.argv, '--enable-mixed-chunk') AS mixed,
        (l.t_ns - lag(l.t_ns) OVER (PARTITION BY l.run_id ORDER BY l.t_ns)) / 1e6 AS since_ms
    FROM log_line l JOIN engine_run r USING (run_id)
    ASOF LEFT JOIN cell c ON l.run_id = c.run_id AND l.t_ns >= c.started_ns
    WHERE regexp_matches(l.line, 'Iteration\(\d+\): |Prefill batch, |Decode batch, ')),
vllm AS (
    SELECT *, regexp_extract(line, 'Iteration\((\d+)\): (\d+) context requests, (\d+) context tokens, (\d+) generation requests, (\d+) generation tokens, iteration elapsed time: ([\d.]+) ms.*KV cache usage: ([\d.]+)%',
        ['step', 'prompts', 'prompt', 'answers', 'answer', 'ms', 'kv']) AS said
    FROM step WHERE contains(line, 'Iteration(')),
prefill AS (
    SELECT *, regexp_extract(line, '#new-seq: (\d+), #new-token: (\d+), #cached-token: (\d+), .*token usage: ([\d.]+), #running-req: (\d+), #queue-req: (\d+), #pending-token: (\d+)',
        ['prompts', 'prompt', 'cached', 'kv', 'answers', 'queue', 'pending']) AS said
    FROM step WHERE contains(line, 'Prefill batch, ')),
decode AS (
    SELECT *, regexp_extract(line, '#running-req: (\d+), .*token usage: ([\d.]+), .*#queue-req: (\d+)',
        ['answers', 'kv', 'queue']) AS said
    FROM step WHERE contains(line, 'Decode batch, '))
SELECT run_id, cell_id, t_ns, engine, 'step' AS kind,
    said.prompts::BIGINT AS prefill_requests, said.prompt::BIGINT AS prefill_tokens,
    said.answers::BIGINT AS decode_requests, said.answer::BIGINT AS decode_tokens,
    said.ms::DOUBLE AS took_ms, said.kv::DOUBLE / 100 AS kv_used_frac,
    NULL::BIGINT AS cached_tokens, NULL::BIGINT AS waiting, NULL::BIGINT AS pending_tokens
FROM vllm
UNION ALL SELECT run_id, cell_id, t_ns, engine, 'prefill',
    said.prompts::BIGINT, said.prompt::BIGINT,
    CASE WHEN mixed THEN said.answers::BIGINT ELSE 0 END,
    CASE WHEN mixed THEN said.answers::BIGINT ELSE 0 END,
    since_ms, said.kv::DOUBLE, said.cached::BIGINT, said.queue::BIGINT, said.pending::BIGINT
FROM prefill
UNION ALL SELECT run_id, cell_id, t_ns, engine, 'decode',
    0, 0, said.answers::BIGINT, said.answers::BIGINT,
    since_ms, said.kv::DOUBLE, NULL, said.queue::BIGINT, NULL
FROM decode;
COMMENT ON VIEW scheduler_step IS 'One row a step of the engine''s scheduler, as its log tells it; t_ns is when the harness read the line, after the step. prefill_tokens: prompt tokens computed in the step, of prefill_requests prompts; a prompt that is cut counts in each of its steps. decode_tokens: of decode_requests answers, one each. The step that ends a prompt also gives its first output token, which no field counts. took_ms: of vLLM the time it prints; of SGLang the time since its line before, idle time included. kv_used_frac: of the KV pool (vLLM: of its blocks but one), cached blocks that nobody uses left out. kind: vLLM has one kind of step; SGLang runs prefill or decode, and a prefill that decodes beside only with --enable-mixed-chunk. cached_tokens, waiting (requests in the queue after the step) and pending_tokens (of prompts not yet computed): SGLang alone. cell_id: the cell begun last before the line, warm-up included; NULL before the first.';
