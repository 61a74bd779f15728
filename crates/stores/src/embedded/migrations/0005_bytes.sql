-- Beside the jobs in each state, how many bytes a namespace keeps: `state` 100 for jobs and records, 101 for events. A program before
-- this version would not count what it does, so it must not use the file.
CREATE TABLE job_counts_new (
    namespace TEXT NOT NULL,
    definition TEXT NOT NULL,
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 8 OR state IN (100, 101)),
    count INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (namespace, definition, state)
) STRICT, WITHOUT ROWID;
INSERT INTO job_counts_new SELECT * FROM job_counts;
DROP TABLE job_counts;
ALTER TABLE job_counts_new RENAME TO job_counts;

-- While the bytes that were there before are being counted: the last job that is. Empty once all are.
CREATE TABLE job_bytes_begun (
    namespace TEXT NOT NULL,
    id BLOB NOT NULL
) STRICT;
INSERT INTO job_bytes_begun VALUES ('', x'');
