-- From schema version 1 to 2. `old` is the recording as it was, this database an empty new one.
-- What version 1 could not say is what it always did: a closed loop, one process, cold prompts.

INSERT INTO recording BY NAME SELECT * REPLACE (2 AS schema_version) FROM old.recording;
INSERT INTO session BY NAME FROM old.session;
INSERT INTO model BY NAME FROM old.model;
INSERT INTO engine_run BY NAME SELECT *, engine AS variant FROM old.engine_run;
INSERT INTO cell BY NAME
SELECT c.* REPLACE (json_merge_patch(c.client, json_object(
        'shared_chunks', s.shared_chunks, 'telemetry_faults', json_array(), 'planned', s.planned))
        AS client),
    c.engine AS variant, 0 AS added_tokens, 'closed' AS load, c.in_flight AS connections,
    1 AS processes, true AS cold
FROM old.cell c JOIN (
    SELECT cell_id, count(*) FILTER (phase = 'measured') AS planned,
        coalesce(sum(len(list_filter(chunk_shared[:-2], lambda x: x))), 0)::BIGINT AS shared_chunks
    FROM old.request GROUP BY ALL) s USING (cell_id);
INSERT INTO request BY NAME
SELECT r.* EXCLUDE (prompt_sha256, chunk_offset_ns),
    0 AS process,
    ('0x' || prompt_sha256[1:16])::UBIGINT AS prompt_hash,
    c.prompt_tokens AS asked_prompt_tokens, c.output_tokens AS asked_output_tokens,
    list_transform(range(1, len(chunk_offset_ns)), lambda i:
        greatest(round(chunk_offset_ns[i + 1] / 1000) - round(chunk_offset_ns[i] / 1000), 0)
        ::UINTEGER) AS chunk_gap_us
FROM old.request r JOIN old.cell c USING (cell_id);
INSERT INTO engine_metric BY NAME FROM old.engine_metric;
INSERT INTO scrape BY NAME FROM old.scrape;
INSERT INTO host_sample BY NAME FROM old.host_sample;
INSERT INTO gpu_sample BY NAME FROM old.gpu_sample;
INSERT INTO log_line BY NAME FROM old.log_line;
INSERT INTO clock_anchor BY NAME FROM old.clock_anchor;
