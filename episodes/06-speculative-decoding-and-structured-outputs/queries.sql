-- Episode 06. A pass is one run of the model for the answers in flight; a proposal is k tokens that
-- it checks. Only VALID cells enter. Random heads are in the queries that say so alone.

-- part: way
-- How each engine process answers: method (vllm: without proposals) and depth, its k (0 without).
SELECT run_id, variant, regexp_extract(variant, '^[a-z]+') AS method,
    coalesce(TRY_CAST(regexp_extract(array_to_string(argv, ' '),
        'num_speculative_tokens"?: ?([0-9]+)', 1) AS BIGINT), 0) AS depth,
    contains(variant, 'random') AS untrained
FROM engine_run

-- part: gained
-- What the engine's counters of speculation gained between the first and the last look at a cell, its
-- warm-up included. position counts from 1; NULL for counters that are not by position.
SELECT m.cell_id, m.name, TRY_CAST(regexp_extract(m.labels, 'position=([0-9]+)', 1) AS BIGINT) + 1
        AS position,
    arg_max(m.value, m.t_ns) - coalesce(max(m.value) FILTER (m.t_ns = f.t_ns), 0) AS gain
FROM engine_metric m JOIN (SELECT cell_id, min(t_ns) AS t_ns FROM scrape GROUP BY ALL) f USING (cell_id)
WHERE m.name LIKE 'vllm:spec_decode_num%' GROUP BY m.cell_id, m.name, m.labels

-- part: position_gain
-- The same as three counts a cell and position: proposals, tokens proposed, tokens accepted.
-- uses: gained
WITH total AS (
    SELECT cell_id, max(gain) FILTER (name = 'vllm:spec_decode_num_drafts_total') AS drafts,
        max(gain) FILTER (name = 'vllm:spec_decode_num_draft_tokens_total') AS draft_tokens,
        max(gain) FILTER (name = 'vllm:spec_decode_num_accepted_tokens_total') AS accepted
    FROM gained GROUP BY cell_id)
SELECT c.cell_id, c.variant, w.method, w.depth, w.untrained, c.sweep, c.repeat, c.in_flight,
    coalesce(c.kind, 'mixed') AS kind, g.position, g.gain AS accepted_here, t.drafts, t.draft_tokens,
    t.accepted
FROM cell c JOIN way w USING (run_id) JOIN gained g USING (cell_id) JOIN total t USING (cell_id)
WHERE c.verdict = 'VALID' AND g.name = 'vllm:spec_decode_num_accepted_tokens_per_pos_total'
    AND t.drafts > 0

-- part: stream
-- Each cell by what the client saw: tokens after an answer's first chunk, the chunks that they came
-- in (a chunk is a pass), and the time that those took.
-- uses: way
SELECT m.cell_id, m.variant, w.method, w.depth, w.untrained, m.sweep, m.repeat, m.in_flight,
    coalesce(c.kind, 'mixed') AS kind, count(*) AS requests,
    sum(m.output_tokens - m.chunk_tokens[1])::BIGINT AS tokens,
    sum(len(m.chunk_gap_us))::BIGINT AS passes, sum(list_sum(m.chunk_gap_us)) / 1e3 AS took_ms
FROM measured_request m JOIN cell c USING (cell_id) JOIN way w ON w.run_id = m.run_id
WHERE m.error IS NULL AND len(m.chunk_gap_us) > 0
    AND m.sweep IN ('alone', 'together', 'depth', 'depth-together', 'null')
GROUP BY ALL

-- part: pace
-- A row a cell: time of a token and of a pass, tokens of a pass, and both against the plain engine on
-- the same texts at the same load in the same repeat.
-- uses: stream
WITH plain AS (
    SELECT repeat, kind, in_flight, any_value(took_ms / tokens) AS plain_ms
    FROM stream WHERE method = 'vllm' GROUP BY ALL)
SELECT s.*, s.took_ms / s.tokens AS token_ms, s.took_ms / s.passes AS pass_ms,
    s.tokens / s.passes AS tokens_per_pass, p.plain_ms, p.plain_ms / (s.took_ms / s.tokens) AS times,
    s.took_ms / s.passes / p.plain_ms AS pass_cost
FROM stream s JOIN plain p USING (repeat, kind, in_flight) WHERE s.tokens > 0

-- part: rate
-- Output tokens a second of a cell; of one in flight, those of the three kinds together.
-- uses: way
SELECT w.variant, w.method, w.depth, o.repeat, o.in_flight,
    sum(o.output_tokens) / sum(o.measured_s) AS tok_per_s, sum(o.requests)::BIGINT AS requests
FROM outcome o JOIN cell c USING (cell_id) JOIN way w USING (run_id)
WHERE o.verdict = 'VALID' AND o.sweep IN ('alone', 'together', 'depth', 'depth-together')
GROUP BY ALL HAVING o.in_flight > 1 OR count(DISTINCT c.kind) = 3

-- part: bound_answer
-- Every answer of the structured cells: its constraint, whether the answer as a whole obeys it (for
-- JSON: just the keys of the schema, each of its type), and its times. again: the second prompt under
-- the same constraint.
WITH told AS (
    SELECT m.cell_id, m.variant, m.repeat, coalesce(c.extra, 'free') AS extra, m.request_id,
        split_part(m.text_id, '-', 1) AS form, m.text_id LIKE '%-again' AS again, m.expected,
        trim(m.output_text) AS answer, m.output_tokens, m.finish_reason,
        (m.first_token_ns - m.sent_ns) / 1e6 AS ttft_ms,
        (m.last_token_ns - m.first_token_ns) / 1e6 / nullif(m.output_tokens - 1, 0) AS tpot_ms
    FROM measured_request m JOIN cell c USING (cell_id)
    WHERE m.error IS NULL AND m.sweep IN ('bound', 'bound-once', 'bound-kinds'))
SELECT *, CASE WHEN form <> 'json' THEN regexp_full_match(answer, expected)
    WHEN NOT json_valid(answer) THEN false
    ELSE coalesce(json_type(answer) = 'OBJECT'
        AND list_sort(json_keys(answer)) = list_sort(json_keys(expected, '$.properties'))
        AND list_bool_and(list_transform(json_keys(expected, '$.properties'), lambda k:
            (json_type(answer, '$.' || k) = 'VARCHAR')
                = (json_extract_string(expected, '$.properties.' || k || '.type') = 'string'))), false)
    END AS valid
FROM told

-- name: verdicts
-- Cells and verdicts, k, and what each answered before it was measured (first line).
-- uses: way
SELECT c.variant, r.version, any_value(w.depth) AS depth, count(*) AS cells,
    count(*) FILTER (c.verdict = 'VALID') AS valid, count(DISTINCT c.repeat) AS repeats,
    split_part(any_value(r.probe_answer), chr(10), 1) AS answer
FROM cell c JOIN engine_run r USING (run_id) JOIN way w USING (run_id)
GROUP BY c.variant, r.version ORDER BY count(DISTINCT c.repeat) DESC, c.variant

-- name: acceptance
-- The share of proposals in which a position and all before it were accepted (unconditional), and
-- the share of those that got so far (conditional), %. Counters of all repeats together.
-- uses: way, gained, position_gain
WITH share AS (
    SELECT method, depth, variant, kind, untrained, position, sum(drafts)::BIGINT AS proposals,
        sum(accepted_here) / sum(drafts) AS frac
    FROM position_gain WHERE sweep IN ('alone', 'depth', 'null') GROUP BY ALL)
SELECT * EXCLUDE (frac), 100 * frac AS accepted_percent,
    100 * frac / nullif(lag(frac, 1, 1) OVER (PARTITION BY variant, kind ORDER BY position), 0)
        AS conditional_percent
FROM share ORDER BY kind, method, depth, position

-- name: acceptance_line
-- The same, a row a configuration and kind of text: shares in the order of places, %.
-- uses: way, gained, position_gain
WITH share AS (
    SELECT variant, method, depth, kind, untrained, position, sum(drafts)::BIGINT AS proposals,
        100 * sum(accepted_here) / sum(drafts) AS percent
    FROM position_gain WHERE sweep IN ('alone', 'depth', 'null') GROUP BY ALL)
SELECT variant, kind, any_value(proposals) AS proposals,
    string_agg(printf('%.0f', percent), ' · ' ORDER BY position) AS accepted_percent
FROM share GROUP BY variant, method, depth, kind, untrained ORDER BY untrained, kind, method, depth

-- name: passes
-- Tokens of a pass, three times: by the formula 1 + the sum of the acceptance by position; by the
-- engine's own totals; and as the chunks of the stream show it (passes without a proposal included,
-- tokens past the end of an answer left out). Of all repeats together.
-- uses: way, gained, position_gain, stream
WITH engine AS (
    SELECT variant, kind, in_flight, method, depth, untrained, sum(drafts)::BIGINT AS proposals,
        sum(accepted_here)::BIGINT AS by_position, sum(all_accepted)::BIGINT AS accepted,
        sum(draft_tokens)::BIGINT AS proposed FROM (
        SELECT cell_id, variant, kind, in_flight, method, depth, untrained, any_value(drafts) AS drafts,
            sum(accepted_here) AS accepted_here, any_value(accepted) AS all_accepted,
            any_value(draft_tokens) AS draft_tokens
        FROM position_gain
        WHERE sweep IN ('alone', 'together', 'depth', 'depth-together', 'null') GROUP BY ALL)
    GROUP BY ALL),
client AS (
    SELECT variant, kind, in_flight, sum(tokens) / sum(passes) AS seen, sum(passes)::BIGINT AS passes
    FROM stream GROUP BY ALL)
SELECT e.*, 1 + by_position / proposals AS formula, 1 + accepted / proposals AS counter, c.seen, c.passes,
    100 * accepted / proposed AS rate_percent
FROM engine e JOIN client c USING (variant, kind, in_flight)
ORDER BY untrained, in_flight, kind, method, depth

-- name: alone
-- One in flight: time of a token and how many times faster than the plain engine, by kind of text.
-- Mean over repeats of the ratio within a repeat, with 95 % Student-t intervals.
-- uses: way, stream, pace
SELECT method, variant, kind, avg(token_ms) AS token_ms, low95(token_ms) AS low_ms,
    high95(token_ms) AS high_ms, avg(pass_ms) AS pass_ms, avg(tokens_per_pass) AS tokens_per_pass,
    avg(pass_cost) AS pass_cost, avg(times) AS times, low95(times) AS times_low,
    high95(times) AS times_high, count(*) AS repeats, sum(requests)::BIGINT AS requests,
    CASE WHEN method = 'vllm' OR count(*) < 2 THEN '' WHEN low95(times) > 1 THEN 'faster'
        WHEN high95(times) < 1 THEN 'slower' ELSE 'tie' END AS verdict
FROM pace WHERE sweep = 'alone' GROUP BY method, variant, kind
ORDER BY kind, list_position(['vllm', 'ngram', 'draft', 'eagle'], method)

-- name: together
-- Output tokens a second by requests in flight, and times that of the plain engine: mean over repeats
-- of the ratio within a repeat, with its 95 % Student-t interval.
-- uses: way, rate
WITH plain AS (SELECT repeat, in_flight, tok_per_s FROM rate WHERE method = 'vllm')
SELECT r.method, r.in_flight, avg(r.tok_per_s) AS tok_per_s, low95(r.tok_per_s) AS low,
    high95(r.tok_per_s) AS high, avg(r.tok_per_s / p.tok_per_s) AS times,
    low95(r.tok_per_s / p.tok_per_s) AS times_low, high95(r.tok_per_s / p.tok_per_s) AS times_high,
    count(*) AS repeats, sum(r.requests)::BIGINT AS requests,
    CASE WHEN r.method = 'vllm' OR count(*) < 2 THEN '' WHEN low95(r.tok_per_s / p.tok_per_s) > 1 THEN 'faster'
        WHEN high95(r.tok_per_s / p.tok_per_s) < 1 THEN 'slower' ELSE 'tie' END AS verdict
FROM rate r JOIN plain p USING (repeat, in_flight)
WHERE r.variant = r.method GROUP BY r.method, r.in_flight
ORDER BY list_position(['vllm', 'ngram', 'draft', 'eagle'], r.method), r.in_flight

-- name: crossing
-- By method: the most in flight at which it was still clearly faster, the fewest at which it was
-- clearly slower (NULL: at none), and where the straight line between two levels, on a logarithmic
-- scale of requests, passes one (NULL: nowhere between them).
-- uses: way, rate
WITH plain AS (SELECT repeat, in_flight, tok_per_s FROM rate WHERE method = 'vllm'),
level AS (
    SELECT r.method, r.in_flight, avg(r.tok_per_s / p.tok_per_s) AS times,
        low95(r.tok_per_s / p.tok_per_s) AS low, high95(r.tok_per_s / p.tok_per_s) AS high
    FROM rate r JOIN plain p USING (repeat, in_flight)
    WHERE r.variant = r.method AND r.method <> 'vllm' GROUP BY ALL),
step AS (
    SELECT *, lag(times) OVER w AS before, lag(in_flight) OVER w AS from_level FROM level
    WINDOW w AS (PARTITION BY method ORDER BY in_flight))
SELECT method, max(in_flight) FILTER (low > 1) AS last_faster, min(in_flight) FILTER (high < 1)
        AS first_slower, arg_min(times, in_flight) AS times_alone, arg_max(times, in_flight) AS times_most,
    min(from_level * pow(in_flight / from_level, (before - 1) / (before - times)))
        FILTER (before > 1 AND times <= 1) AS at_in_flight
FROM step GROUP BY method ORDER BY method

-- name: kinds_together
-- The same answers seen one by one: times faster than the plain engine's answer to the same prompt, by
-- kind of text, with several kinds in flight together. The step is shared, so a kind that is
-- guessed badly slows the others.
WITH each AS (
    SELECT m.variant, m.repeat, m.in_flight, m.text_id, split_part(m.text_id, '-', 1) AS kind,
        (m.last_token_ns - m.first_token_ns) / nullif(m.output_tokens - m.chunk_tokens[1], 0) AS pace
    FROM measured_request m WHERE m.sweep = 'together' AND m.error IS NULL),
ratio AS (
    SELECT e.variant, e.in_flight, e.kind, e.repeat, median(p.pace / e.pace) AS times
    FROM each e JOIN each p USING (repeat, in_flight, text_id)
    WHERE p.variant = 'vllm' AND e.variant <> 'vllm' GROUP BY ALL)
SELECT variant, in_flight, kind, avg(times) AS times, low95(times) AS low, high95(times) AS high
FROM ratio GROUP BY ALL ORDER BY variant, in_flight, kind

-- name: depth
-- k, the tokens proposed at a time, in the first repeat, one in flight. Of k = 0 the plain engine.
-- uses: way, stream, pace
SELECT method, depth, kind, token_ms, pass_ms, tokens_per_pass, times, pass_cost
FROM pace WHERE repeat = 1 AND in_flight = 1 AND NOT untrained
ORDER BY kind, method, depth

-- name: depth_together
-- The same with the most in flight, all kinds mixed.
-- uses: way, stream, pace
SELECT method, depth, in_flight, token_ms, pass_ms, tokens_per_pass, times, pass_cost
FROM pace WHERE repeat = 1 AND in_flight = (SELECT max(in_flight) FROM pace) AND NOT untrained
ORDER BY method, depth

-- name: depth_gain
-- Computed from the acceptance of the deepest proposals: tokens of a pass at every k, and what the last
-- position adds.
-- uses: way, gained, position_gain
WITH share AS (
    SELECT method, kind, position, sum(accepted_here) / sum(drafts) AS frac
    FROM position_gain WHERE sweep = 'depth' AND depth = 7 GROUP BY ALL)
SELECT method, kind, position AS depth, frac AS adds,
    1 + sum(frac) OVER (PARTITION BY method, kind ORDER BY position) AS tokens_per_pass
FROM share ORDER BY kind, method, depth

-- name: untrained
-- Heads with random weights: what a pass costs where nothing is accepted, first repeat.
-- uses: way, stream, pace, gained, position_gain
SELECT p.variant, p.kind, p.token_ms, p.pass_cost, p.times, p.tokens_per_pass,
    any_value(g.drafts)::BIGINT AS proposals, any_value(g.draft_tokens)::BIGINT AS proposed,
    any_value(g.accepted)::BIGINT AS accepted
FROM pace p JOIN position_gain g USING (cell_id) WHERE p.untrained GROUP BY ALL ORDER BY p.variant

-- name: answers
-- Every greedy answer against the plain engine's answer to the same prompt, alone (the first one):
-- same text, to the last letter.
WITH told AS (
    SELECT m.variant, m.sweep, m.in_flight, m.repeat, m.text_id, m.output_text
    FROM measured_request m WHERE m.error IS NULL
        AND m.sweep IN ('alone', 'together', 'depth', 'depth-together', 'null')),
plain AS (
    SELECT text_id, arg_min(output_text, (in_flight, repeat)) AS output_text
    FROM told WHERE variant = 'vllm' GROUP BY text_id)
SELECT t.variant, t.in_flight, count(*) AS answers, count(DISTINCT t.text_id) AS prompts,
    count(*) FILTER (t.output_text = p.output_text) AS same
FROM told t JOIN plain p USING (text_id) GROUP BY t.variant, t.in_flight
ORDER BY t.in_flight, list_position(['vllm', 'ngram', 'draft', 'eagle'], t.variant) NULLS LAST, t.variant

-- name: greedy
-- Token by token against the plain engine at the same load: answers, those with the same tokens, all
-- tokens compared; of the answers that part, the earliest token and the widest gap there to the
-- runner-up, nats, by the plain engine's account (0 is a tie).
WITH told AS (
    SELECT variant, text_id, token_text, token_gap FROM measured_request
    WHERE sweep = 'greedy' AND error IS NULL),
pair AS (
    SELECT o.variant, o.text_id, p.token_text AS plain, o.token_text AS own, p.token_gap AS gap,
        list_position(list_transform(range(1, least(len(p.token_text), len(o.token_text)) + 1),
            lambda i: p.token_text[i] = o.token_text[i]), false) AS parts_at
    FROM told o JOIN told p USING (text_id) WHERE p.variant = 'vllm' AND o.variant <> 'vllm')
SELECT variant, count(*) AS answers, count(*) FILTER (own = plain) AS same,
    sum(least(len(own), len(plain)))::BIGINT AS tokens, min(parts_at) AS first_token,
    max(abs(gap[parts_at])) AS widest_gap
FROM pair GROUP BY variant ORDER BY variant

-- part: sampled_token
-- Sampled answers: the token at each place, of the plain engine (the second half of its answers) and
-- of another; again: the first half. Tokens that came fewer than ten times with both together count as
-- one.
WITH answer AS (
    SELECT CASE sweep WHEN 'sampled' THEN variant WHEN 'sampled-cooler' THEN 'cooler' ELSE
            CASE WHEN 2 * request_id > max(request_id) OVER (PARTITION BY sweep) + 1 THEN 'vllm'
                ELSE 'again' END END AS variant, token_text
    FROM measured_request WHERE sweep LIKE 'sampled%' AND error IS NULL),
token AS (
    SELECT variant, unnest(token_text) AS token, unnest(range(1, len(token_text) + 1)) AS nth
    FROM answer),
counted AS (SELECT variant, nth, token, count(*) AS n FROM token GROUP BY ALL),
other AS (SELECT DISTINCT variant FROM counted WHERE variant <> 'vllm'),
pair AS (
    SELECT o.variant, c.nth, c.token, coalesce(sum(c.n) FILTER (c.variant = 'vllm'), 0) AS plain,
        coalesce(sum(c.n) FILTER (c.variant = o.variant), 0) AS own
    FROM counted c JOIN other o ON c.variant IN ('vllm', o.variant) GROUP BY ALL)
SELECT variant, nth, CASE WHEN plain + own >= 10 THEN token ELSE '(others)' END AS token,
    sum(plain)::BIGINT AS plain, sum(own)::BIGINT AS own
FROM pair GROUP BY ALL

-- part: sampled_place
-- Chi-squared of two samples at each place of the answer, and how many standard errors above its
-- expectation that is (Wilson and Hilferty's approximation).
-- uses: sampled_token
WITH total AS (SELECT variant, nth, sum(plain) AS a, sum(own) AS b FROM sampled_token GROUP BY ALL),
squares AS (
    SELECT t.variant, t.nth, any_value(s.a) AS plain_answers, any_value(s.b) AS answers,
        count(*) - 1 AS df,
        sum(pow(sqrt(s.b / s.a) * t.plain - sqrt(s.a / s.b) * t.own, 2) / (t.plain + t.own)) AS chi2
    FROM sampled_token t JOIN total s USING (variant, nth) WHERE s.a > 0 AND s.b > 0 GROUP BY ALL)
SELECT variant, nth, plain_answers::BIGINT AS plain_answers, answers::BIGINT AS answers, df, chi2,
    (pow(chi2 / nullif(df, 0), 1 / 3) - (1 - 2 / (9 * nullif(df, 0)))) / sqrt(2 / (9 * nullif(df, 0))) AS z
FROM squares

-- name: sampled
-- Is the distribution the same? By place of the answer. again and cooler are controls: the plain engine
-- once more, and at another temperature.
-- uses: sampled_token, sampled_place
SELECT * FROM sampled_place ORDER BY variant IN ('again', 'cooler'), variant, nth

-- name: sampled_most
-- The most standard errors of each, and the places that were compared.
-- uses: sampled_token, sampled_place
SELECT variant, count(*) AS places, max(z) AS most_z FROM sampled_place WHERE df > 0
GROUP BY variant ORDER BY variant IN ('again', 'cooler'), variant

-- name: sampled_verdict
-- Whether some method is told apart from the plain engine: five standard errors at one place or more.
-- noticed: whether the control is, at three.
-- uses: sampled_token, sampled_place
SELECT coalesce(bool_or(z > 5) FILTER (variant NOT IN ('again', 'cooler')), false) AS differs,
    coalesce(bool_or(z > 3) FILTER (variant = 'cooler'), false) AS noticed FROM sampled_place

-- name: sampled_odds
-- Sampled tokens from the second on (the first is never proposed): by how many nats each was less
-- likely than the likeliest token there (0 where it was that), by the target's own account. Mean and
-- most, and of how many tokens.
WITH token AS (
    SELECT CASE sweep WHEN 'sampled-cooler' THEN 'cooler' ELSE variant END AS variant,
        unnest(token_gap[2:]) AS gap
    FROM measured_request WHERE sweep LIKE 'sampled%' AND error IS NULL)
SELECT variant, count(gap) AS tokens, avg(greatest(-gap, 0)) AS mean_nats, max(-gap) AS most_nats
FROM token GROUP BY variant
ORDER BY variant = 'cooler', list_position(['vllm', 'ngram', 'draft', 'eagle'], variant), variant

-- name: valid
-- Answers that obey their constraint as a whole, free and bound, by library; ended: by themselves.
-- uses: bound_answer
SELECT variant, form, extra, count(*) AS answers, count(*) FILTER (valid) AS valid,
    count(*) FILTER (finish_reason = 'stop') AS ended, avg(output_tokens) AS tokens
FROM bound_answer GROUP BY form, variant, extra
ORDER BY list_position(['json', 'regex', 'choice', 'grammar'], form), variant DESC, extra DESC

-- name: valid_total
-- The same over all forms.
-- uses: bound_answer
SELECT variant, extra, count(*) AS answers, count(*) FILTER (valid) AS valid
FROM bound_answer GROUP BY ALL ORDER BY variant DESC, extra DESC

-- name: bound_cost
-- Wait for the first token and time of each later one, median, ms. First: the first prompt under a
-- constraint, again: the second one. The very first bound request of a process, which also starts the
-- library, is left out here and stands in bound_start.
-- uses: bound_answer
WITH begun AS (
    SELECT *, extra = 'bound' AND request_id = min(request_id) OVER (PARTITION BY cell_id) AS starts
    FROM bound_answer)
SELECT variant, form, extra, median(ttft_ms) FILTER (NOT again) AS first_ms,
    median(ttft_ms) FILTER (again) AS again_ms,
    median(ttft_ms) FILTER (NOT again) - median(ttft_ms) FILTER (again) AS compile_ms,
    median(tpot_ms) AS token_ms, count(*) AS answers
FROM begun WHERE NOT starts GROUP BY variant, form, extra
ORDER BY list_position(['json', 'regex', 'choice', 'grammar'], form), variant DESC, extra DESC

-- name: bound_start
-- The first bound request of each cell: its wait for the first token, ms; in the first such cell of a
-- process the library is loaded for it.
-- uses: bound_answer
SELECT variant, repeat, arg_min(form, request_id) AS form, arg_min(ttft_ms, request_id) AS ttft_ms,
    median(ttft_ms) AS usual_ms
FROM bound_answer WHERE extra = 'bound' GROUP BY variant, repeat, cell_id ORDER BY variant DESC, repeat

-- part: judged_answer
-- Answers to the texts with a label. strict: the answer as a whole is the right label (of JSON: its
-- field), but for case and a full stop; lenient: the first label named in it is the right one.
SELECT c.kind, c.extra, m.text_id, m.expected, m.output_text, m.output_tokens,
    CASE WHEN c.extra <> 'json' THEN lower(rtrim(trim(m.output_text), '.')) = m.expected
        WHEN json_valid(m.output_text) THEN
            coalesce(json_extract_string(m.output_text, '$.label') = m.expected, false)
        ELSE false END AS strict,
    regexp_extract(lower(m.output_text), 'positive|negative|sport|food|travel|money') = m.expected
        AS lenient
FROM measured_request m JOIN cell c USING (cell_id) WHERE m.sweep = 'labelled' AND m.error IS NULL

-- name: labelled
-- Right answers by form, with Wilson's 95 % interval of the lenient share, %. guess: what one label
-- said every time would get.
-- uses: judged_answer
WITH share AS (
    SELECT kind, extra, count(*) AS n, count(*) FILTER (strict) AS strict,
        count(*) FILTER (lenient) AS lenient, avg(output_tokens) AS tokens,
        100 / count(DISTINCT expected) AS guess_percent
    FROM judged_answer GROUP BY ALL)
SELECT *, 100 * strict / n AS strict_percent, 100 * lenient / n AS lenient_percent,
    100 * (lenient / n + 1.92 / n - 1.96 * sqrt(lenient / n * (1 - lenient / n) / n + 0.96 / (n * n)))
        / (1 + 3.84 / n) AS low_percent,
    100 * (lenient / n + 1.92 / n + 1.96 * sqrt(lenient / n * (1 - lenient / n) / n + 0.96 / (n * n)))
        / (1 + 3.84 / n) AS high_percent
FROM share ORDER BY kind, list_position(['free', 'choice', 'json'], extra)

-- name: labelled_pairs
-- Prompt by prompt: how many are right free and wrong bound, and the other way round (lenient).
-- uses: judged_answer
SELECT b.kind, b.extra, count(*) FILTER (f.lenient AND NOT b.lenient) AS lost,
    count(*) FILTER (b.lenient AND NOT f.lenient) AS won, count(*) AS prompts
FROM judged_answer b JOIN judged_answer f USING (text_id)
WHERE f.extra = 'free' AND b.extra <> 'free' GROUP BY ALL ORDER BY b.kind, b.extra

-- name: training
-- The loss of what was trained here, nats a token of the answers, as its script wrote it.
SELECT model, step, tokens_seen, loss, took_ns / 1e9 AS took_s
FROM training_step WHERE coalesce(note, '') = '' ORDER BY model, step

-- name: trained
-- How each ended: steps, tokens, processor time (without the answers, which were made before), and on answers that were not
-- learned the loss and the note of its script.
SELECT model, max(step) AS steps, max(tokens_seen)::BIGINT AS tokens_seen, max(took_ns) / 1e9 AS took_s,
    arg_max(loss, step) FILTER (coalesce(note, '') = '') AS loss,
    any_value(loss) FILTER (note <> '') AS held_out_loss, any_value(note) FILTER (note <> '') AS note
FROM training_step GROUP BY model ORDER BY model

-- name: attempts
-- What was asked once and what came of it, in the engine's own words.
SELECT name, asks, outcome, http_status, coalesce(nullif(words[len(words)], ''), answer) AS words
FROM attempt ORDER BY attempt_id

-- name: rejected
-- The cells that no figure uses, and why.
SELECT variant, sweep, coalesce(kind, '') AS kind, in_flight, repeat, unnest(reasons) AS reason
FROM cell WHERE verdict = 'INVALID' ORDER BY sweep, kind, in_flight, variant, repeat

-- name: rejected_count
-- How many cells are INVALID.
SELECT count(*) AS cells FROM cell WHERE verdict = 'INVALID'

-- part: depth_shares
-- Acceptance by position of the deepest proposals, a column a position.
-- uses: way, gained, position_gain
WITH share AS (
    SELECT method, kind, position, sum(accepted_here) / sum(drafts) AS frac
    FROM position_gain WHERE sweep = 'depth' AND depth = 7 GROUP BY ALL)
SELECT method, kind, max(frac) FILTER (position = 1) AS a1, max(frac) FILTER (position = 2) AS a2,
    max(frac) FILTER (position = 3) AS a3, max(frac) FILTER (position = 4) AS a4,
    max(frac) FILTER (position = 5) AS a5, max(frac) FILTER (position = 6) AS a6,
    max(frac) FILTER (position = 7) AS a7
FROM share GROUP BY ALL

-- part: pass_line
-- The time of a pass by k: a line through the fewest and the most tokens proposed, first repeat, one
-- in flight, all kinds.
-- uses: way, stream, pace
WITH level AS (
    SELECT method, depth, sum(took_ms) / sum(passes) AS pass_ms FROM pace
    WHERE repeat = 1 AND in_flight = 1 AND depth > 0 AND NOT untrained GROUP BY ALL)
SELECT method, min(depth) AS fewest, max(depth) AS most,
    (arg_max(pass_ms, depth) - arg_min(pass_ms, depth)) / nullif(max(depth) - min(depth), 0) AS each_ms,
    arg_min(pass_ms, depth) - min(depth) * each_ms AS base_ms
FROM level GROUP BY method HAVING count(*) > 1

-- name: depth_fit
-- The constants of the small model, by method and kind of text.
-- uses: way, gained, position_gain, stream, pace, depth_shares, pass_line
SELECT s.method, s.kind, s.a1, s.a2, s.a3, s.a4, s.a5, s.a6, s.a7, l.base_ms, l.each_ms, p.plain_ms
FROM depth_shares s JOIN pass_line l USING (method)
JOIN (SELECT kind, any_value(plain_ms) AS plain_ms FROM pace WHERE repeat = 1 AND in_flight = 1
    AND method = 'vllm' GROUP BY kind) p USING (kind) ORDER BY s.method, s.kind

-- name: depth_points
-- What was recorded at each k in the first repeat: tokens of a pass by the engine's counters, and the
-- time of a token. fit: the ends that the constants come from.
-- uses: way, gained, position_gain, stream, pace, pass_line
WITH counted AS (
    SELECT cell_id, 1 + any_value(accepted) / any_value(drafts) AS tokens_per_pass
    FROM position_gain GROUP BY cell_id)
SELECT p.method, p.kind, p.depth, CASE WHEN p.depth IN (l.fewest, l.most) THEN 'fit' ELSE 'check' END
        AS part,
    c.tokens_per_pass, p.token_ms
FROM pace p JOIN counted c USING (cell_id) JOIN pass_line l ON l.method = p.method
WHERE p.repeat = 1 AND p.in_flight = 1 AND p.depth > 0 AND NOT p.untrained
ORDER BY p.method, p.kind, p.depth

-- part: load_line
-- The time of a pass by requests in flight: a line through one and the most, mean over repeats, all
-- kinds mixed; and the tokens of a pass.
-- uses: way, stream, pace
WITH level AS (
    SELECT method, in_flight, avg(pass_ms) AS pass_ms, avg(tokens_per_pass) AS tokens_per_pass FROM (
        SELECT method, in_flight, repeat, sum(took_ms) / sum(passes) AS pass_ms,
            sum(tokens) / sum(passes) AS tokens_per_pass
        FROM pace WHERE sweep IN ('alone', 'together') GROUP BY ALL)
    GROUP BY ALL)
SELECT *, (arg_max_ms - arg_min_ms) / nullif(most - fewest, 0) AS each_ms,
    arg_min_ms - fewest * each_ms AS base_ms FROM (
    SELECT method, min(in_flight) AS fewest, max(in_flight) AS most,
        arg_max(pass_ms, in_flight) AS arg_max_ms, arg_min(pass_ms, in_flight) AS arg_min_ms,
        avg(tokens_per_pass) AS tokens_per_pass
    FROM level GROUP BY method)

-- name: load_fit
-- The constants of the model of load, with the plain engine's.
-- uses: way, stream, pace, load_line
SELECT l.method, l.base_ms, l.each_ms, l.tokens_per_pass, p.base_ms AS plain_base_ms,
    p.each_ms AS plain_each_ms
FROM load_line l, (SELECT * FROM load_line WHERE method = 'vllm') p ORDER BY l.method

-- name: load_points
-- The time of a token at each load, mean over repeats. fit: the ends of the line.
-- uses: way, stream, pace, load_line
SELECT s.method, s.in_flight, CASE WHEN s.in_flight IN (l.fewest, l.most) THEN 'fit' ELSE 'check' END
        AS part, avg(s.token_ms) AS token_ms
FROM (SELECT method, in_flight, repeat, sum(took_ms) / sum(tokens) AS token_ms FROM pace
    WHERE sweep IN ('alone', 'together') GROUP BY ALL) s JOIN load_line l USING (method)
GROUP BY ALL ORDER BY s.method, s.in_flight
