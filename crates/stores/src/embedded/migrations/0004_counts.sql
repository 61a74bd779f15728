-- How many jobs there are in each state, of a namespace (`definition` is empty) and of each definition in it. A batch writes by how
-- much it changes them into its row of events, which it writes anyway; from time to time the sums are written here, with the number
-- of the last event they contain (`counted_event` in `meta`). A program before this version would not count what it does, so it must
-- not use the file.
ALTER TABLE events ADD COLUMN counts TEXT;
ALTER TABLE events ADD COLUMN counts_sum INTEGER;

CREATE TABLE job_counts (
    namespace TEXT NOT NULL,
    definition TEXT NOT NULL,
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 8),
    count INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (namespace, definition, state)
) STRICT, WITHOUT ROWID;

-- While the jobs that were there before are being counted: the last one that is. Empty once all are.
CREATE TABLE job_counts_begun (
    namespace TEXT NOT NULL,
    id BLOB NOT NULL
) STRICT;
INSERT INTO job_counts_begun VALUES ('', x'');
