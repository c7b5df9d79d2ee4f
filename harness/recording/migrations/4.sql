-- From schema version 3 to 4. `old` is the recording as it was, this database an empty new one.
-- What version 3 could not say is what it always did: greedy, of an exact length, no texts.

INSERT INTO recording BY NAME SELECT * REPLACE (4 AS schema_version) FROM old.recording;
INSERT INTO session BY NAME FROM old.session;
INSERT INTO model BY NAME FROM old.model;
INSERT INTO engine_run BY NAME FROM old.engine_run;
INSERT INTO cell BY NAME FROM old.cell;
INSERT INTO request BY NAME FROM old.request;
INSERT INTO engine_metric BY NAME FROM old.engine_metric;
INSERT INTO scrape BY NAME FROM old.scrape;
INSERT INTO host_sample BY NAME FROM old.host_sample;
INSERT INTO gpu_sample BY NAME FROM old.gpu_sample;
INSERT INTO log_line BY NAME FROM old.log_line;
INSERT INTO clock_anchor BY NAME FROM old.clock_anchor;
