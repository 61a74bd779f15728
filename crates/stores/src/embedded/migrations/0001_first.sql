-- The first schema. Every key leads with the namespace. Rows that change often (jobs) are kept small: what was
-- submitted is written once, beside the payload, and never again.
--
-- `sum` is a checksum over the row: SQLite has none of its own, and a bit that flipped on disk must end in an error,
-- not in a wrong answer.
--
-- Conditions are written with comparisons: SQLite builds a table for a list of more than two values, each time anew.

CREATE TABLE meta (
    name TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL,
    sum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The hot rows. `worker` is set while the job is held, `wait_key` while it waits for a concurrency key.
CREATE TABLE jobs (
    namespace TEXT NOT NULL,
    id BLOB NOT NULL CHECK (length(id) = 16),
    lane BLOB NOT NULL CHECK (length(lane) = 16),
    priority INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 8),
    due INTEGER CHECK (due IS NOT NULL OR state = 0 OR state BETWEEN 2 AND 4),
    worker TEXT CHECK ((worker IS NOT NULL) = (state = 3 OR state = 4)),
    wait_key TEXT CHECK (wait_key IS NULL OR state = 0),
    run BLOB,
    live TEXT NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;

-- A claim reads the head of a lane here and touches nothing else. The namespace leads so that the pending jobs of one
-- namespace can be counted from the same index.
CREATE INDEX jobs_claim ON jobs (namespace, lane, priority, seq) WHERE state = 2;

-- The sweep: the longest due first. When leases run out is kept in memory, found again through jobs_held: an entry here
-- would be written twice for each job, and nearly always for nothing.
CREATE INDEX jobs_due ON jobs (due) WHERE due IS NOT NULL AND worker IS NULL;

-- What a worker holds, when it is lost or removed; and all that is held, when the store is opened.
CREATE INDEX jobs_held ON jobs (namespace, worker) WHERE worker IS NOT NULL;

-- Who is next when a concurrency key is released.
CREATE INDEX jobs_wait_key ON jobs (namespace, wait_key, priority, seq) WHERE wait_key IS NOT NULL;

-- The jobs of a run.
CREATE INDEX jobs_run ON jobs (namespace, run) WHERE run IS NOT NULL;

-- Listing by a state that few jobs are in. Completed jobs are the many, and found by walking the table.
CREATE INDEX jobs_rare ON jobs (namespace, state, id) WHERE state < 2 OR state > 5;

-- What was submitted: written once with the job, removed with it.
CREATE TABLE inputs (
    namespace TEXT NOT NULL,
    id BLOB NOT NULL,
    spec_sum INTEGER NOT NULL,
    spec TEXT NOT NULL,
    payload_sum INTEGER NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE results (
    namespace TEXT NOT NULL,
    id BLOB NOT NULL,
    sum INTEGER NOT NULL,
    result BLOB NOT NULL,
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;

-- Past attempts, in the order in which they ended.
CREATE TABLE attempts (
    no INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    job BLOB NOT NULL,
    body TEXT NOT NULL,
    sum INTEGER NOT NULL
) STRICT;
CREATE INDEX attempts_job ON attempts (namespace, job);

CREATE TABLE edges (
    namespace TEXT NOT NULL,
    parent BLOB NOT NULL,
    child BLOB NOT NULL,
    PRIMARY KEY (namespace, parent, child)
) STRICT, WITHOUT ROWID;

-- Listing by facet, newest first.
CREATE TABLE job_facets (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    id BLOB NOT NULL,
    PRIMARY KEY (namespace, name, value, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE records (
    namespace TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version > 0),
    parent TEXT,
    due INTEGER,
    facets TEXT,
    value TEXT NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX records_due ON records (due) WHERE due IS NOT NULL;
CREATE INDEX records_parent ON records (namespace, kind, parent, key) WHERE parent IS NOT NULL;

CREATE TABLE record_facets (
    namespace TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (namespace, kind, name, value, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE logs (
    namespace TEXT NOT NULL,
    job BLOB NOT NULL,
    piece INTEGER NOT NULL CHECK (piece > 0),
    attempt INTEGER NOT NULL,
    at INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (namespace, job, piece)
) STRICT, WITHOUT ROWID;

-- One row a batch: a range of numbers and a compact body. `next_seq` rides along, so that the place in the queue where
-- the next batch begins is known after a restart without a scan and without a row of its own.
CREATE TABLE events (
    first_no INTEGER PRIMARY KEY,
    count INTEGER NOT NULL CHECK (count > 0),
    at INTEGER NOT NULL,
    next_seq INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
