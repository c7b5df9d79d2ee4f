-- name: itl_definitions
-- One stream, the first measured request of the variant `grouped`, and five ways to say how far
-- apart its tokens came, ms.
WITH stream AS (
    SELECT *, list_sum(chunk_gap_us) / 1e3 AS after_first_ms,
        (last_token_ns - sent_ns) / 1e6 AS whole_ms
    FROM measured_request WHERE variant = 'grouped' ORDER BY request_id LIMIT 1),
token AS (
    SELECT unnest(flatten(list_transform(list_zip(chunk_gap_us, chunk_tokens[2:]),
        lambda pair: list_concat([pair[1]], list_resize([]::UINTEGER[], pair[2] - 1, 0))))) AS gap_us
    FROM stream)
SELECT number, definition, ms, tokens, chunks FROM (
    SELECT 1 AS number, '1 · chunk gap' AS definition,
        (SELECT median(gap) FROM (SELECT unnest(chunk_gap_us) / 1e3 AS gap FROM stream)) AS ms
    UNION ALL SELECT 2, '2 · token''s share',
        (SELECT median(itl_ms) FROM itl JOIN stream USING (cell_id, request_id))
    UNION ALL SELECT 3, '3 · chunk''s time',
        (SELECT median(gap_us) / 1e3 FROM token)
    UNION ALL SELECT 4, '4 · rest, by chunks', after_first_ms / len(chunk_gap_us)
        FROM stream
    UNION ALL SELECT 5, '5 · all, by tokens', whole_ms / output_tokens FROM stream),
    (SELECT output_tokens AS tokens, len(chunk_gap_us) + 1 AS chunks FROM stream)
ORDER BY number

-- name: success
-- What a count of answers with status 200 says of each server, and what the recording says.
SELECT c.variant AS server, count(*) AS requests, count(*) FILTER (r.http_status = 200) AS status_200,
    count(*) FILTER (r.http_status = 200) * 1e9 / any_value(c.ended_ns - c.measured_ns)
        AS answers_per_s,
    median((r.first_byte_ns - r.sent_ns) / 1e6) AS first_byte_ms,
    o.success_frac * 100 AS success_percent, o.output_tok_per_s, c.verdict, c.reasons[1] AS reason
FROM request r JOIN cell c USING (cell_id) JOIN outcome o USING (cell_id)
WHERE c.sweep = 'success' AND r.phase = 'measured'
GROUP BY ALL ORDER BY server DESC

-- name: role
-- Chat answers whose first chunk names a role: time to that chunk, and to the first token, ms.
SELECT request_id - min(request_id) OVER () + 1 AS request,
    (first_byte_ns - sent_ns) / 1e6 AS first_chunk_ms, (first_token_ns - sent_ns) / 1e6 AS ttft_ms
FROM measured_request WHERE variant = 'polite' ORDER BY request_id

-- name: role_p50
-- The medians of both.
SELECT median((first_byte_ns - sent_ns) / 1e6) AS first_chunk_ms,
    median((first_token_ns - sent_ns) / 1e6) AS ttft_ms
FROM measured_request WHERE variant = 'polite'

-- name: stall
-- Time to first token of each request, by when it was due: from when it was sent, and from when it
-- was due. The cell is INVALID, so this reads the table and not a metric view.
SELECT (r.scheduled_ns - c.measured_ns) / 1e9 AS due_s,
    (r.first_token_ns - r.sent_ns) / 1e6 AS from_sent_ms,
    (r.first_token_ns - r.scheduled_ns) / 1e6 AS from_scheduled_ms
FROM request r JOIN cell c USING (cell_id)
WHERE c.sweep = 'stall' AND r.phase = 'measured' AND r.error IS NULL
ORDER BY due_s

-- name: stall_summary
-- The same requests in two numbers each: p90, and how many waited longer than 100 ms.
SELECT count(*) AS requests,
    quantile_cont((r.first_token_ns - r.sent_ns) / 1e6, 0.9) AS sent_p90_ms,
    quantile_cont((r.first_token_ns - r.scheduled_ns) / 1e6, 0.9) AS scheduled_p90_ms,
    count(*) FILTER (r.first_token_ns - r.sent_ns > 100e6) AS sent_slow,
    count(*) FILTER (r.first_token_ns - r.scheduled_ns > 100e6) AS scheduled_slow,
    max((r.first_token_ns - r.scheduled_ns) / 1e6) AS longest_ms
FROM request r JOIN cell c USING (cell_id)
WHERE c.sweep = 'stall' AND r.phase = 'measured' AND r.error IS NULL

-- name: verdicts
-- What the harness said of each cell.
SELECT variant AS server, sweep, verdict, coalesce(reasons[1], '') AS reason
FROM cell ORDER BY cell_id
