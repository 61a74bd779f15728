-- The first schema. Every key leads with the namespace, so that the same tables can be distributed by it.
-- Text is compared byte by byte (collation "C"): the order of keys must not depend on how a database was created.

CREATE TABLE windlass.meta (
    name text PRIMARY KEY,
    value bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO windlass.meta VALUES ('last_event', 0);

-- Places in the queue are handed out in blocks, one block a batch.
CREATE SEQUENCE windlass.places INCREMENT BY 1048576 MINVALUE 1 START 1;

-- Turns "fewer rows than there should be" into an error, so that a whole batch of statements can be sent with its
-- COMMIT behind it: where the count is wrong, the COMMIT finds a failed transaction and commits nothing.
CREATE FUNCTION windlass.expect(seen bigint, wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF seen <> wanted THEN
        RAISE EXCEPTION 'found % rows instead of %', seen, wanted USING ERRCODE = 'WL001';
    END IF;
END $$;

-- Unfinished jobs. What never changes comes first and what changes together stands together: PostgreSQL logs only the
-- part between the common beginning and the common end of an updated row.
CREATE TABLE windlass.jobs (
    namespace text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    lane uuid NOT NULL,
    run uuid,
    spec text NOT NULL,
    seq bigint NOT NULL,
    due bigint,
    priority integer NOT NULL,
    state smallint NOT NULL CHECK (state BETWEEN 0 AND 4),
    worker text COLLATE "C",
    wait_key text COLLATE "C",
    live text NOT NULL,
    PRIMARY KEY (namespace, id)
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX jobs_claim ON windlass.jobs (namespace, lane, priority, seq) WHERE state = 2;
CREATE INDEX jobs_due ON windlass.jobs (due) WHERE due IS NOT NULL;
CREATE INDEX jobs_held ON windlass.jobs (namespace, worker) WHERE worker IS NOT NULL;
CREATE INDEX jobs_wait ON windlass.jobs (namespace, wait_key, priority, seq) WHERE wait_key IS NOT NULL;
CREATE INDEX jobs_run ON windlass.jobs (namespace, run, id) WHERE run IS NOT NULL;

-- Finished jobs, moved here by the transaction that ends them, so that the cost of a claim never grows with history.
CREATE TABLE windlass.jobs_done (
    namespace text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    run uuid,
    spec text NOT NULL,
    seq bigint NOT NULL,
    due bigint,
    priority integer NOT NULL,
    state smallint NOT NULL CHECK (state BETWEEN 5 AND 8),
    live text NOT NULL,
    -- What belongs to the end of a job comes with it and needs no row and no index entry of its own.
    result bytea,
    attempt text,
    PRIMARY KEY (namespace, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX jobs_done_due ON windlass.jobs_done (due) WHERE due IS NOT NULL;
CREATE INDEX jobs_done_run ON windlass.jobs_done (namespace, run, id) WHERE run IS NOT NULL;
-- What people look for among the finished: the few that did not complete.
CREATE INDEX jobs_done_bad ON windlass.jobs_done (namespace, id) WHERE state <> 5;

CREATE TABLE windlass.payloads (
    namespace text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (namespace, id)
);
-- All attempts but the last one of a finished job, which is kept with the job.
CREATE TABLE windlass.attempts (
    namespace text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    number integer NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (namespace, id, number)
);
CREATE TABLE windlass.edges (
    namespace text COLLATE "C" NOT NULL,
    parent uuid NOT NULL,
    child uuid NOT NULL,
    PRIMARY KEY (namespace, parent, child)
);
CREATE TABLE windlass.job_facets (
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    PRIMARY KEY (namespace, name, value, id)
);
CREATE TABLE windlass.logs (
    namespace text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    piece bigint NOT NULL,
    attempt integer NOT NULL,
    at bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (namespace, id, piece)
);

-- Facts that are not jobs. A heartbeat changes version and value only, so it stays on its page and touches no index.
CREATE TABLE windlass.records (
    namespace text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    parent text COLLATE "C",
    facets text,
    due bigint,
    version bigint NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (namespace, kind, key)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX records_parent ON windlass.records (namespace, kind, parent, key) WHERE parent IS NOT NULL;
CREATE INDEX records_due ON windlass.records (due) WHERE due IS NOT NULL;
CREATE TABLE windlass.record_facets (
    namespace text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, kind, name, value, key)
);

-- One row a batch: its events, and the proof that it was committed. `first_no` is 0 until the row is numbered; `count` is
-- 0 where a batch had no events, and -1 for a fence: the batch of that id will never commit.
CREATE TABLE windlass.events (
    first_no bigint NOT NULL DEFAULT 0,
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    count integer NOT NULL,
    batch uuid NOT NULL UNIQUE,
    body text NOT NULL
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
CREATE UNIQUE INDEX events_numbered ON windlass.events (first_no) WHERE first_no > 0;
CREATE INDEX events_unnumbered ON windlass.events (id) WHERE first_no = 0 AND count > 0;

-- Which sets of required tags there are. `tx` is the transaction that added the row: a reader that knows everything up to
-- its last snapshot finds what appeared since without reading the rest again.
CREATE TABLE windlass.lanes (
    namespace text COLLATE "C" NOT NULL,
    lane uuid NOT NULL,
    tags text NOT NULL,
    used_at bigint NOT NULL,
    tx bigint NOT NULL,
    PRIMARY KEY (namespace, lane)
) WITH (fillfactor = 70);
CREATE INDEX lanes_tx ON windlass.lanes (tx);
