-- The recording: one DuckDB file per recording. Every time is in nanoseconds on the monotonic clock
-- of the machine that recorded, and names ending in _ns are such times or differences of them.
-- The comments below are the data dictionary: the site renders them, and a test fails where one
-- is missing.

CREATE TABLE recording (
    schema_version INTEGER NOT NULL,
    recording_id VARCHAR NOT NULL,
    episode VARCHAR NOT NULL,
    tier VARCHAR NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ,
    experiment_toml VARCHAR NOT NULL,
    experiment_sha256 VARCHAR NOT NULL,
    engines VARCHAR[] NOT NULL,
    views_sha256 VARCHAR
);
COMMENT ON TABLE recording IS 'One row: what was recorded, from which declaration.';
COMMENT ON COLUMN recording.schema_version IS 'Version of this schema; a reader refuses a version it does not know.';
COMMENT ON COLUMN recording.recording_id IS 'Name of the recording: date, tier and a counter.';
COMMENT ON COLUMN recording.episode IS 'Two-digit number of the episode.';
COMMENT ON COLUMN recording.tier IS 'Machine tier: cpu or gpu.';
COMMENT ON COLUMN recording.created_at IS 'Wall-clock time at which the recording was begun.';
COMMENT ON COLUMN recording.finished_at IS 'Wall-clock time at which its last cell was committed; NULL while cells are missing.';
COMMENT ON COLUMN recording.experiment_toml IS 'The whole declaration, as it was when the recording began.';
COMMENT ON COLUMN recording.experiment_sha256 IS 'SHA-256 of experiment_toml; a continued recording must match it.';
COMMENT ON COLUMN recording.views_sha256 IS 'SHA-256 of the views.sql that its views were made from.';
COMMENT ON COLUMN recording.engines IS 'The engines that it covers, in the declared order.';

CREATE TABLE session (
    session_id INTEGER PRIMARY KEY,
    started_at TIMESTAMPTZ NOT NULL,
    started_ns BIGINT NOT NULL,
    boot_id VARCHAR NOT NULL,
    harness_version VARCHAR NOT NULL,
    harness_commit VARCHAR,
    lock_sha256 VARCHAR,
    machine JSON NOT NULL,
    calibration JSON
);
COMMENT ON TABLE session IS 'One row per start of the harness: a recording that was interrupted and continued has several. Cells are compared only within one session.';
COMMENT ON COLUMN session.session_id IS 'Counter from 1.';
COMMENT ON COLUMN session.started_at IS 'Wall-clock time of the start.';
COMMENT ON COLUMN session.started_ns IS 'Monotonic time of the start; the origin for plots.';
COMMENT ON COLUMN session.boot_id IS 'Boot of the kernel: monotonic times compare only within one boot.';
COMMENT ON COLUMN session.harness_version IS 'Version of this harness.';
COMMENT ON COLUMN session.harness_commit IS 'Commit of the repository, with "-dirty" where the tree had changes; NULL outside a checkout.';
COMMENT ON COLUMN session.lock_sha256 IS 'SHA-256 of the lock file that the harness was installed from.';
COMMENT ON COLUMN session.calibration IS 'The ceiling of the client on this machine, as `make calibrate` found it; NULL where it was never calibrated.';
COMMENT ON COLUMN session.machine IS 'Processor, cores, memory, kernel, GPUs, core assignment and Python of the machine.';

CREATE TABLE model (
    model_id VARCHAR PRIMARY KEY,
    source VARCHAR NOT NULL,
    weights_sha256 VARCHAR,
    weight_bytes BIGINT,
    config JSON
);
COMMENT ON TABLE model IS 'The models served.';
COMMENT ON COLUMN model.model_id IS 'Name under which the engines serve it.';
COMMENT ON COLUMN model.source IS 'Where the weights come from, without any machine path.';
COMMENT ON COLUMN model.weights_sha256 IS 'SHA-256 of the safetensors file(s); NULL where the harness did not see the weights: a server that was already running, or a model that the engine fetched from the hub itself.';
COMMENT ON COLUMN model.weight_bytes IS 'Size of the weight files, bytes.';
COMMENT ON COLUMN model.config IS 'The model''s config.json.';

CREATE TABLE engine_run (
    run_id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL,
    engine VARCHAR NOT NULL,
    variant VARCHAR NOT NULL,
    version VARCHAR,
    model_id VARCHAR NOT NULL,
    argv VARCHAR[] NOT NULL,
    env JSON NOT NULL,
    lock_sha256 VARCHAR,
    cores INTEGER[],
    started_ns BIGINT NOT NULL,
    ready_ns BIGINT,
    stopped_ns BIGINT,
    kv_pool_tokens BIGINT,
    probe_answer VARCHAR,
    fault VARCHAR,
    exit_note VARCHAR
);
COMMENT ON TABLE engine_run IS 'One row per start of an engine process.';
COMMENT ON COLUMN engine_run.run_id IS 'Counter from 1.';
COMMENT ON COLUMN engine_run.session_id IS 'The session that started it.';
COMMENT ON COLUMN engine_run.engine IS 'vllm, sglang, transformers, external (a server that was already running) or emulator.';
COMMENT ON COLUMN engine_run.variant IS 'Name of its configuration or attempt in the declaration; the engine''s name where it has one only.';
COMMENT ON COLUMN engine_run.version IS 'Version the engine reports.';
COMMENT ON COLUMN engine_run.model_id IS 'The model served.';
COMMENT ON COLUMN engine_run.argv IS 'Full command line, secrets redacted, machine paths shortened.';
COMMENT ON COLUMN engine_run.env IS 'Environment variables that shape it: those that the harness set, and those of the shell that name the engine or its libraries. Secrets redacted.';
COMMENT ON COLUMN engine_run.lock_sha256 IS 'SHA-256 of the lock file its environment was installed from.';
COMMENT ON COLUMN engine_run.cores IS 'CPU cores it was pinned to; NULL where not pinned.';
COMMENT ON COLUMN engine_run.started_ns IS 'When its process was started.';
COMMENT ON COLUMN engine_run.ready_ns IS 'When it first answered that it was healthy.';
COMMENT ON COLUMN engine_run.stopped_ns IS 'When it had exited.';
COMMENT ON COLUMN engine_run.kv_pool_tokens IS 'Size of the KV cache pool in tokens, from the engine''s own log; NULL where it prints none.';
COMMENT ON COLUMN engine_run.probe_answer IS 'Its greedy answer to the question that the declaration asks of every engine that has the tier''s model, before it is measured; NULL where none is asked. Data, never markup.';
COMMENT ON COLUMN engine_run.fault IS 'A reason against every cell of this run, such as a wrong answer to that question; NULL where there is none.';
COMMENT ON COLUMN engine_run.exit_note IS 'Why it ended, where that was not asked for.';

CREATE TABLE cell (
    cell_id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    engine VARCHAR NOT NULL,
    variant VARCHAR NOT NULL,
    sweep VARCHAR NOT NULL,
    repeat INTEGER NOT NULL,
    position INTEGER NOT NULL,
    endpoint VARCHAR NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    added_tokens INTEGER NOT NULL,
    load VARCHAR NOT NULL,
    in_flight INTEGER,
    rate_per_s DOUBLE,
    burstiness DOUBLE,
    capacity_frac DOUBLE,
    connections INTEGER NOT NULL,
    processes INTEGER NOT NULL,
    cold BOOLEAN NOT NULL,
    shared_tokens INTEGER,
    shared_at VARCHAR,
    documents INTEGER,
    reset_cache BOOLEAN NOT NULL DEFAULT false,
    front_cap BOOLEAN NOT NULL DEFAULT false,
    search_step INTEGER,
    kind VARCHAR,
    extra VARCHAR,
    temperature DOUBLE NOT NULL DEFAULT 0,
    ends_itself BOOLEAN NOT NULL DEFAULT false,
    min_requests INTEGER NOT NULL,
    min_duration_s DOUBLE NOT NULL,
    warmup_requests INTEGER NOT NULL,
    seed_prompts BIGINT NOT NULL,
    seed_arrivals BIGINT NOT NULL,
    seed_sampling BIGINT NOT NULL,
    started_ns BIGINT NOT NULL,
    measured_ns BIGINT NOT NULL,
    ended_ns BIGINT NOT NULL,
    verdict VARCHAR NOT NULL,
    reasons VARCHAR[] NOT NULL,
    client JSON NOT NULL
);
COMMENT ON TABLE cell IS 'One row per cell: one load level of one engine in one repeat. A cell is committed as a whole when it ends.';
COMMENT ON COLUMN cell.cell_id IS 'Counter from 1, in the order recorded.';
COMMENT ON COLUMN cell.session_id IS 'The session that recorded it.';
COMMENT ON COLUMN cell.run_id IS 'The engine process that served it.';
COMMENT ON COLUMN cell.engine IS 'The engine, as in engine_run.';
COMMENT ON COLUMN cell.variant IS 'Name of the engine''s configuration, as in engine_run.';
COMMENT ON COLUMN cell.sweep IS 'Name of the sweep in the declaration.';
COMMENT ON COLUMN cell.repeat IS 'Repeat, from 1. Engines take turns within a repeat, and each repeat starts the engine afresh.';
COMMENT ON COLUMN cell.position IS 'Place of the cell in the declared order, from 1.';
COMMENT ON COLUMN cell.endpoint IS 'completions or chat.';
COMMENT ON COLUMN cell.prompt_tokens IS 'Prompt length asked for, tokens; of a session its first turn''s, of a trace or a mix its warm-up''s, of texts the most that any has.';
COMMENT ON COLUMN cell.output_tokens IS 'Output length asked for, tokens; of a trace or a mix its warm-up''s, of answers that end by themselves the most.';
COMMENT ON COLUMN cell.added_tokens IS 'Tokens that the server adds to every prompt (a chat template, a first token); each prompt has as many words fewer.';
COMMENT ON COLUMN cell.load IS 'How requests arrive. closed: in_flight slots, each sending when its last answer has ended. Open loop, at times fixed before the run: constant, poisson, gamma, stages (a rate that changes), trace (recorded times).';
COMMENT ON COLUMN cell.in_flight IS 'Requests kept in flight (closed loop); NULL in an open loop.';
COMMENT ON COLUMN cell.rate_per_s IS 'Mean rate asked for, requests a second (open loop); of sessions, their first turns.';
COMMENT ON COLUMN cell.burstiness IS 'Shape of the gamma distribution of the times between arrivals: 1 is Poisson, below 1 comes in bursts. NULL elsewhere.';
COMMENT ON COLUMN cell.capacity_frac IS 'rate_per_s as a share of the highest closed-loop rate that this variant, or the plain engine of one that has no closed loop to compare, reached before, in this recording; NULL elsewhere.';
COMMENT ON COLUMN cell.connections IS 'Connections held open, which is the most that can be in flight.';
COMMENT ON COLUMN cell.processes IS 'Load processes that shared the requests.';
COMMENT ON COLUMN cell.cold IS 'Whether every prompt must be new to the engine: a cache hit makes such a cell INVALID.';
COMMENT ON COLUMN cell.shared_tokens IS 'Tokens of each measured prompt that all prompts of the cell with the same document share; the rest is the prompt''s own. NULL where nothing is shared by plan.';
COMMENT ON COLUMN cell.shared_at IS 'Where the shared tokens stand in the prompt: start or end; NULL where none are shared.';
COMMENT ON COLUMN cell.documents IS 'Number of different shared texts, which the measured prompts take in turn; NULL where none are shared.';
COMMENT ON COLUMN cell.reset_cache IS 'Whether the engine was told to empty its prefix cache before the cell.';
COMMENT ON COLUMN cell.front_cap IS 'Whether connections is a cap in front of the server by intent: waiting for one is then part of the load, and no lateness of the client.';
COMMENT ON COLUMN cell.search_step IS 'Step of a search for the highest rate that holds an objective, from 1; NULL elsewhere.';
COMMENT ON COLUMN cell.kind IS 'The kind of text that its prompts are, where the sweep has levels of it; NULL elsewhere.';
COMMENT ON COLUMN cell.extra IS 'What is merged into the body of its requests, by name, where the sweep has levels of it; NULL elsewhere.';
COMMENT ON COLUMN cell.temperature IS 'Sampling temperature: 0 is greedy; above it each request has a seed of its own.';
COMMENT ON COLUMN cell.ends_itself IS 'Whether answers end by themselves, so that output_tokens is the most and not the length.';
COMMENT ON COLUMN cell.min_requests IS 'The cell ends only when this many measured requests are done and min_duration_s has passed.';
COMMENT ON COLUMN cell.min_duration_s IS 'Shortest measured phase, seconds.';
COMMENT ON COLUMN cell.warmup_requests IS 'Requests sent before the measured phase; recorded with phase warmup and excluded from every metric.';
COMMENT ON COLUMN cell.seed_prompts IS 'Seed of the prompts. For a server that was already running it is made from the declared seed, the recording and the session, so that no prompt is one that the server has seen.';
COMMENT ON COLUMN cell.seed_arrivals IS 'Seed of the order of cells and of the times of arrival.';
COMMENT ON COLUMN cell.seed_sampling IS 'Seed sent to the engine for sampling; above a temperature of 0 each request adds its number.';
COMMENT ON COLUMN cell.started_ns IS 'When the load process began.';
COMMENT ON COLUMN cell.measured_ns IS 'When the measured phase began.';
COMMENT ON COLUMN cell.ended_ns IS 'When the last request had ended.';
COMMENT ON COLUMN cell.verdict IS 'VALID or INVALID. An INVALID cell never enters a metric view.';
COMMENT ON COLUMN cell.reasons IS 'Why the cell is INVALID; empty where it is VALID.';
COMMENT ON COLUMN cell.client IS 'Health of the load process: schedule lag, user-space lag, CPU, real-time priority, shared reads, reads without a kernel stamp.';

CREATE TABLE request (
    cell_id INTEGER NOT NULL,
    request_id INTEGER NOT NULL,
    phase VARCHAR NOT NULL,
    process INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    session INTEGER,
    turn INTEGER,
    prompt_hash UBIGINT NOT NULL,
    asked_prompt_tokens INTEGER NOT NULL,
    asked_output_tokens INTEGER NOT NULL,
    shared_prefix_tokens INTEGER,
    salt VARCHAR,
    adapter VARCHAR,
    text_id VARCHAR,
    extra JSON,
    expected VARCHAR,
    scheduled_ns BIGINT NOT NULL,
    sent_ns BIGINT,
    first_byte_ns BIGINT,
    first_token_ns BIGINT,
    first_answer_ns BIGINT,
    last_token_ns BIGINT,
    ended_ns BIGINT,
    prompt_tokens INTEGER,
    cached_tokens INTEGER,
    output_tokens INTEGER,
    client_output_tokens INTEGER,
    chunk_gap_us UINTEGER[] NOT NULL,
    chunk_tokens USMALLINT[] NOT NULL,
    chunk_shared BOOLEAN[] NOT NULL,
    finish_reason VARCHAR,
    http_status INTEGER,
    error VARCHAR,
    output_text VARCHAR USING COMPRESSION zstd,
    token_text VARCHAR[],
    token_gap FLOAT[]
);
COMMENT ON TABLE request IS 'One row per request, failed ones included.';
COMMENT ON COLUMN request.cell_id IS 'The cell it belongs to.';
COMMENT ON COLUMN request.request_id IS 'Counter within the cell, from 1, in the planned order.';
COMMENT ON COLUMN request.phase IS 'warmup or measured.';
COMMENT ON COLUMN request.process IS 'The load process that sent it, from 0.';
COMMENT ON COLUMN request.slot IS 'The connection of that process that carried it, from 0.';
COMMENT ON COLUMN request.session IS 'Its conversation, from 1, where requests are turns of one; else NULL.';
COMMENT ON COLUMN request.turn IS 'Its turn in that conversation, from 1; else NULL.';
COMMENT ON COLUMN request.prompt_hash IS 'First 64 bits of the SHA-256 of the prompt''s text, by which equal prompts are paired across engines.';
COMMENT ON COLUMN request.asked_prompt_tokens IS 'Prompt length asked for, tokens.';
COMMENT ON COLUMN request.asked_output_tokens IS 'Output length asked for, tokens; the most, where the answer ends by itself.';
COMMENT ON COLUMN request.shared_prefix_tokens IS 'Longest prefix that the prompt has in common with one planned before it in its cell under the same salt and adapter, tokens: what a cache of everything could serve, known before the run. NULL where the sweep shares nothing by plan, or the server adds tokens to the prompts.';
COMMENT ON COLUMN request.salt IS 'The cache salt sent with it: only requests of the same salt may share a cache entry. NULL for none.';
COMMENT ON COLUMN request.adapter IS 'The LoRA adapter asked for; NULL for the model itself.';
COMMENT ON COLUMN request.text_id IS 'Which line of the sweep''s file of texts its prompt is; NULL where prompts are random words.';
COMMENT ON COLUMN request.extra IS 'What that line merged into the body; NULL for nothing.';
COMMENT ON COLUMN request.expected IS 'What a right answer is, by that line; NULL where it does not say.';
COMMENT ON COLUMN request.scheduled_ns IS 'When the plan wanted it sent. In a closed loop: when the request before it on the same slot ended, plus the thinking time of a later turn.';
COMMENT ON COLUMN request.sent_ns IS 'Right before its first byte was handed to the kernel; NULL if it could not be sent.';
COMMENT ON COLUMN request.first_byte_ns IS 'Kernel receive time of the read that held the first byte of the answer.';
COMMENT ON COLUMN request.first_token_ns IS 'Arrival of the first chunk that carries a token of any kind (reasoning included).';
COMMENT ON COLUMN request.first_answer_ns IS 'Arrival of the first chunk that carries a token of the answer itself.';
COMMENT ON COLUMN request.last_token_ns IS 'Arrival of the last chunk that carries a token.';
COMMENT ON COLUMN request.ended_ns IS 'Arrival of the end of the answer, or the time of the failure.';
COMMENT ON COLUMN request.prompt_tokens IS 'Prompt tokens that the server counted (usage); NULL if it sent none.';
COMMENT ON COLUMN request.cached_tokens IS 'Prompt tokens that the server took from its prefix cache (usage); NULL if it does not say.';
COMMENT ON COLUMN request.output_tokens IS 'Output tokens that the server counted (usage); NULL if it sent none.';
COMMENT ON COLUMN request.client_output_tokens IS 'Output tokens that the client counted from the stream, as a check.';
COMMENT ON COLUMN request.chunk_gap_us IS 'Time before each chunk that carries tokens, since the one before it, microseconds; the first chunk has first_token_ns and none here. Arrival is the kernel''s receive time of the read that completed the chunk.';
COMMENT ON COLUMN request.chunk_tokens IS 'Tokens in each of those chunks: from the server''s running usage where it sends one, else one per chunk where that adds up to its total. Empty where neither holds.';
COMMENT ON COLUMN request.chunk_shared IS 'True where the chunk shared its read with a later one, so that its time is an upper bound.';
COMMENT ON COLUMN request.finish_reason IS 'As the server gave it.';
COMMENT ON COLUMN request.http_status IS 'HTTP status; NULL if none came.';
COMMENT ON COLUMN request.error IS 'What failed; NULL for a success. Success is: status 200, a finish reason, at least one token, a usage.';
COMMENT ON COLUMN request.output_text IS 'The text of the answer. Data, never markup.';
COMMENT ON COLUMN request.token_text IS 'The text of each output token, where the declaration asks for log-probabilities; else NULL.';
COMMENT ON COLUMN request.token_gap IS 'Log-probability of each output token minus that of the best other one: how near it was to being another. NULL where not asked for.';

CREATE TABLE engine_metric (
    run_id INTEGER NOT NULL,
    cell_id INTEGER,
    t_ns BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    labels VARCHAR NOT NULL,
    value DOUBLE NOT NULL
);
COMMENT ON TABLE engine_metric IS 'Samples of the engine''s /metrics. A row is kept where a value changed; the first and the last sample of a cell are kept whole.';
COMMENT ON COLUMN engine_metric.run_id IS 'The engine process.';
COMMENT ON COLUMN engine_metric.cell_id IS 'The cell in flight.';
COMMENT ON COLUMN engine_metric.t_ns IS 'When the answer of /metrics had arrived.';
COMMENT ON COLUMN engine_metric.name IS 'Name of the metric, as the engine gives it.';
COMMENT ON COLUMN engine_metric.labels IS 'Its labels, as name=value pairs in alphabetical order; the model name is left out.';
COMMENT ON COLUMN engine_metric.value IS 'Its value, in the engine''s own unit.';

CREATE TABLE scrape (
    run_id INTEGER NOT NULL,
    cell_id INTEGER,
    t_ns BIGINT NOT NULL,
    took_ns BIGINT NOT NULL
);
COMMENT ON TABLE scrape IS 'One row per read of /metrics: when, and how long it took.';
COMMENT ON COLUMN scrape.run_id IS 'The engine process.';
COMMENT ON COLUMN scrape.cell_id IS 'The cell in flight.';
COMMENT ON COLUMN scrape.t_ns IS 'When the answer had arrived.';
COMMENT ON COLUMN scrape.took_ns IS 'From asking to answer.';

CREATE TABLE host_sample (
    cell_id INTEGER,
    t_ns BIGINT NOT NULL,
    core_busy_frac DOUBLE[] NOT NULL,
    core_steal_frac DOUBLE[] NOT NULL,
    memory_used_bytes BIGINT NOT NULL,
    engine_rss_bytes BIGINT,
    engine_cpu_s DOUBLE
);
COMMENT ON TABLE host_sample IS 'Samples of the machine, at least twice a second while a cell is in flight.';
COMMENT ON COLUMN host_sample.cell_id IS 'The cell in flight.';
COMMENT ON COLUMN host_sample.t_ns IS 'When the sample was taken.';
COMMENT ON COLUMN host_sample.core_busy_frac IS 'Busy share of each core since the sample before, 0 to 1.';
COMMENT ON COLUMN host_sample.core_steal_frac IS 'Share of each core that the hypervisor gave to others, 0 to 1.';
COMMENT ON COLUMN host_sample.memory_used_bytes IS 'Memory in use on the machine, bytes.';
COMMENT ON COLUMN host_sample.engine_rss_bytes IS 'Resident memory of the engine''s processes, bytes; NULL for a server elsewhere.';
COMMENT ON COLUMN host_sample.engine_cpu_s IS 'CPU time used by the engine''s processes since they started, seconds.';

CREATE TABLE gpu_sample (
    cell_id INTEGER,
    t_ns BIGINT NOT NULL,
    gpu INTEGER NOT NULL,
    sm_clock_mhz INTEGER,
    memory_clock_mhz INTEGER,
    power_w DOUBLE,
    temperature_c INTEGER,
    memory_used_bytes BIGINT,
    busy_frac DOUBLE,
    throttle_reasons BIGINT
);
COMMENT ON TABLE gpu_sample IS 'NVML samples of each GPU, on the same clock; empty on the cpu tier.';
COMMENT ON COLUMN gpu_sample.cell_id IS 'The cell in flight.';
COMMENT ON COLUMN gpu_sample.t_ns IS 'When the sample was taken.';
COMMENT ON COLUMN gpu_sample.gpu IS 'Index of the GPU.';
COMMENT ON COLUMN gpu_sample.sm_clock_mhz IS 'SM clock, MHz.';
COMMENT ON COLUMN gpu_sample.memory_clock_mhz IS 'Memory clock, MHz.';
COMMENT ON COLUMN gpu_sample.power_w IS 'Power draw, watts.';
COMMENT ON COLUMN gpu_sample.temperature_c IS 'Temperature, degrees Celsius.';
COMMENT ON COLUMN gpu_sample.memory_used_bytes IS 'Device memory in use, bytes.';
COMMENT ON COLUMN gpu_sample.busy_frac IS 'Share of time in which a kernel ran, as NVML gives it, 0 to 1.';
COMMENT ON COLUMN gpu_sample.throttle_reasons IS 'NVML bit mask of clock-limit reasons.';

CREATE TABLE log_line (
    run_id INTEGER NOT NULL,
    t_ns BIGINT NOT NULL,
    line VARCHAR NOT NULL
);
COMMENT ON TABLE log_line IS 'The engine''s log, line by line.';
COMMENT ON COLUMN log_line.run_id IS 'The engine process.';
COMMENT ON COLUMN log_line.t_ns IS 'When the harness read the line.';
COMMENT ON COLUMN log_line.line IS 'The line, secrets redacted, machine paths shortened. Data, never markup.';

CREATE TABLE clock_anchor (
    cell_id INTEGER NOT NULL,
    mono_ns BIGINT NOT NULL,
    realtime_minus_mono_ns BIGINT NOT NULL,
    width_ns BIGINT NOT NULL
);
COMMENT ON TABLE clock_anchor IS 'Pairs of the wall clock and the monotonic clock, taken through every cell: kernel receive stamps are wall-clock and are converted with the nearest pair.';
COMMENT ON COLUMN clock_anchor.cell_id IS 'The cell in flight.';
COMMENT ON COLUMN clock_anchor.mono_ns IS 'Monotonic time of the pair.';
COMMENT ON COLUMN clock_anchor.realtime_minus_mono_ns IS 'Wall clock minus monotonic clock.';
COMMENT ON COLUMN clock_anchor.width_ns IS 'Time between the two monotonic reads around the wall-clock read: the pair is off by at most this.';

CREATE TABLE attempt (
    attempt_id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    asks VARCHAR NOT NULL,
    outcome VARCHAR NOT NULL,
    http_status INTEGER,
    answer VARCHAR,
    words VARCHAR[] NOT NULL,
    started_ns BIGINT NOT NULL,
    ended_ns BIGINT NOT NULL
);
COMMENT ON TABLE attempt IS 'What an engine was asked once, and what came of it: features that it may refuse. The command line is in engine_run.';
COMMENT ON COLUMN attempt.attempt_id IS 'Counter from 1.';
COMMENT ON COLUMN attempt.session_id IS 'The session that made it.';
COMMENT ON COLUMN attempt.run_id IS 'The engine process that was asked.';
COMMENT ON COLUMN attempt.name IS 'Its name in the declaration.';
COMMENT ON COLUMN attempt.asks IS 'What is asked, in plain words.';
COMMENT ON COLUMN attempt.outcome IS 'answered; rejected (an HTTP status of 400 or above); died (after it was ready, whatever it still said); no_answer (it lives, and said nothing in the time given); not_started.';
COMMENT ON COLUMN attempt.http_status IS 'HTTP status of its answer; NULL if none came.';
COMMENT ON COLUMN attempt.answer IS 'The text of the answer, or what it said against the request, cut; NULL if none came. Data, never markup.';
COMMENT ON COLUMN attempt.words IS 'Lines of its log that are the evidence: those that the declaration asks to keep, and the last errors. Secrets redacted. Data, never markup.';
COMMENT ON COLUMN attempt.started_ns IS 'When the engine was about to be started.';
COMMENT ON COLUMN attempt.ended_ns IS 'When it had been stopped.';

CREATE TABLE job (
    job_id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    script VARCHAR NOT NULL,
    script_sha256 VARCHAR NOT NULL,
    environment VARCHAR NOT NULL,
    lock_sha256 VARCHAR,
    versions JSON,
    argv VARCHAR[] NOT NULL,
    repeat INTEGER NOT NULL,
    cores INTEGER[],
    started_ns BIGINT NOT NULL,
    ended_ns BIGINT NOT NULL,
    fault VARCHAR,
    facts JSON
);
COMMENT ON TABLE job IS 'One row per run of a script that measures something without requests. Its rows count only where fault is NULL.';
COMMENT ON COLUMN job.job_id IS 'Counter from 1.';
COMMENT ON COLUMN job.session_id IS 'The session that ran it.';
COMMENT ON COLUMN job.name IS 'Its name in the declaration.';
COMMENT ON COLUMN job.script IS 'The script, in harness/jobs.';
COMMENT ON COLUMN job.script_sha256 IS 'SHA-256 of the script.';
COMMENT ON COLUMN job.environment IS 'The environment under .engines whose Python ran it; empty for the harness''s own.';
COMMENT ON COLUMN job.lock_sha256 IS 'SHA-256 of the lock file that this environment was installed from.';
COMMENT ON COLUMN job.versions IS 'Versions of the libraries that it measured, as the script saw them.';
COMMENT ON COLUMN job.argv IS 'Full command line; its output file is ROWS, secrets redacted, machine paths shortened.';
COMMENT ON COLUMN job.repeat IS 'Repeat, from 1.';
COMMENT ON COLUMN job.cores IS 'CPU cores it was pinned to; NULL where not pinned.';
COMMENT ON COLUMN job.started_ns IS 'When its process was started.';
COMMENT ON COLUMN job.ended_ns IS 'When it had exited.';
COMMENT ON COLUMN job.fault IS 'Why its rows do not count: how it failed, with its last lines; NULL where it ended well.';
COMMENT ON COLUMN job.facts IS 'What the script says of itself or of the machine, once a run.';

CREATE TABLE kernel_sample (
    job_id INTEGER NOT NULL,
    op VARCHAR NOT NULL,
    backend VARCHAR,
    ran VARCHAR,
    dtype VARCHAR,
    batch INTEGER,
    heads INTEGER,
    kv_heads INTEGER,
    head_size INTEGER,
    q_tokens INTEGER,
    kv_tokens INTEGER,
    size_bytes BIGINT,
    ranks INTEGER,
    sample INTEGER NOT NULL,
    took_ns BIGINT NOT NULL,
    flop DOUBLE,
    moved_bytes DOUBLE
);
COMMENT ON TABLE kernel_sample IS 'One row per timed call of an operation outside any engine. Columns that an operation has no use for are NULL.';
COMMENT ON COLUMN kernel_sample.job_id IS 'The job that timed it.';
COMMENT ON COLUMN kernel_sample.op IS 'The operation: attention, matmul, copy, all_reduce and the like.';
COMMENT ON COLUMN kernel_sample.backend IS 'The implementation asked for.';
COMMENT ON COLUMN kernel_sample.ran IS 'What really ran, by a profiler; NULL where that was not verified.';
COMMENT ON COLUMN kernel_sample.dtype IS 'Type of the numbers.';
COMMENT ON COLUMN kernel_sample.batch IS 'Sequences at once.';
COMMENT ON COLUMN kernel_sample.heads IS 'Query heads.';
COMMENT ON COLUMN kernel_sample.kv_heads IS 'Key and value heads.';
COMMENT ON COLUMN kernel_sample.head_size IS 'Numbers in a head.';
COMMENT ON COLUMN kernel_sample.q_tokens IS 'Tokens that ask, a sequence.';
COMMENT ON COLUMN kernel_sample.kv_tokens IS 'Tokens that are attended to, a sequence.';
COMMENT ON COLUMN kernel_sample.size_bytes IS 'Size of what is copied or reduced, bytes.';
COMMENT ON COLUMN kernel_sample.ranks IS 'Processes that take part.';
COMMENT ON COLUMN kernel_sample.sample IS 'Counter of the calls of one case.';
COMMENT ON COLUMN kernel_sample.took_ns IS 'Time of the call.';
COMMENT ON COLUMN kernel_sample.flop IS 'Floating-point operations of the call, computed from its shape.';
COMMENT ON COLUMN kernel_sample.moved_bytes IS 'Bytes that the call must read and write at least, computed from its shape.';

CREATE TABLE token_score (
    job_id INTEGER NOT NULL,
    variant VARCHAR NOT NULL,
    text_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    token_id INTEGER NOT NULL,
    logprob FLOAT,
    reference_logprob FLOAT,
    kl_nats FLOAT,
    top1 BOOLEAN
);
COMMENT ON TABLE token_score IS 'One row per token of a held-out text: how a model in another precision predicts it, against the reference.';
COMMENT ON COLUMN token_score.job_id IS 'The job that computed it.';
COMMENT ON COLUMN token_score.variant IS 'The precision of weights or KV cache.';
COMMENT ON COLUMN token_score.text_id IS 'The text.';
COMMENT ON COLUMN token_score.position IS 'Place of the token in the text.';
COMMENT ON COLUMN token_score.token_id IS 'The token that stands there.';
COMMENT ON COLUMN token_score.logprob IS 'Natural logarithm of the probability that the variant gives it.';
COMMENT ON COLUMN token_score.reference_logprob IS 'The same of the reference.';
COMMENT ON COLUMN token_score.kl_nats IS 'Kullback-Leibler divergence of the variant from the reference over the whole vocabulary, sum of p_reference * ln(p_reference / p_variant), nats.';
COMMENT ON COLUMN token_score.top1 IS 'Whether both find the same token most likely.';

CREATE TABLE training_step (
    job_id INTEGER NOT NULL,
    model VARCHAR NOT NULL,
    step INTEGER NOT NULL,
    tokens_seen BIGINT,
    loss DOUBLE,
    took_ns BIGINT,
    note VARCHAR
);
COMMENT ON TABLE training_step IS 'The log of the training of a model that the project makes, one row a logged step.';
COMMENT ON COLUMN training_step.job_id IS 'The job that read the log.';
COMMENT ON COLUMN training_step.model IS 'The model, by its name in harness/models.';
COMMENT ON COLUMN training_step.step IS 'Optimizer steps so far.';
COMMENT ON COLUMN training_step.tokens_seen IS 'Training tokens so far.';
COMMENT ON COLUMN training_step.loss IS 'The loss, in the unit that note or the script names.';
COMMENT ON COLUMN training_step.took_ns IS 'Time since training began.';
COMMENT ON COLUMN training_step.note IS 'What else the script says of the step.';
