-- name: stall_by_budget
-- The stall of the running answers on vLLM, by budget: in each repeat the longest gap between two
-- tokens of a running answer that touches the time from the long prompt's sending to its first
-- token; of the repeats the median.
WITH long AS (
    SELECT cell_id, run_id, variant, scheduled_ns, sent_ns, first_token_ns FROM measured_request
    WHERE sweep = 'stall' AND engine = 'vllm' AND asked_prompt_tokens > prompt_tokens AND error IS NULL),
gap AS (
    SELECT k.cell_id, k.request_id, k.arrival_ns, lag(k.arrival_ns) OVER (
        PARTITION BY k.cell_id, k.request_id ORDER BY k.chunk_index) AS before_ns
    FROM chunk k JOIN long USING (cell_id)),
worst AS (
    SELECT l.variant, l.run_id, l.cell_id, max(g.arrival_ns - g.before_ns) / 1e6 AS stall_ms
    FROM long l JOIN gap g USING (cell_id)
    JOIN request r ON (r.cell_id, r.request_id) = (g.cell_id, g.request_id)
    WHERE r.scheduled_ns < l.scheduled_ns AND g.arrival_ns > l.sent_ns AND g.before_ns < l.first_token_ns
    GROUP BY ALL)
SELECT any_value(CAST(argv[1 + list_position(argv, '--max-num-batched-tokens')] AS INTEGER))
        AS budget_tokens, median(stall_ms) AS stall_ms
FROM worst JOIN engine_run r USING (run_id) GROUP BY worst.variant ORDER BY budget_tokens
