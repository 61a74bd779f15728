-- How many jobs there are in each state, of a namespace (`definition` is empty) and of each definition in it. A batch writes by how
-- much it changes them into its row of events, which it writes anyway and which nobody else touches; whoever numbers events adds that
-- up here, and empties it there. So no two batches ever wait for the same count.
--
-- A program before this version would not count what it does. It does not name `counts`, so that nothing it writes is accepted.
ALTER TABLE windlass.events ADD COLUMN IF NOT EXISTS counts text NOT NULL DEFAULT '';
ALTER TABLE windlass.events ALTER COLUMN counts DROP DEFAULT;

CREATE TABLE IF NOT EXISTS windlass.job_counts (
    namespace text COLLATE "C" NOT NULL,
    definition text COLLATE "C" NOT NULL,
    state smallint NOT NULL,
    -- For a moment less than nothing, where a job is forgotten before its end is added up.
    count bigint NOT NULL,
    PRIMARY KEY (namespace, definition, state)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- While the jobs that were there before are being counted: the last one of each table that is.
CREATE TABLE IF NOT EXISTS windlass.job_counts_begun (
    part text PRIMARY KEY,
    namespace text COLLATE "C" NOT NULL DEFAULT '',
    id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    done boolean NOT NULL DEFAULT false
);
INSERT INTO windlass.job_counts_begun (part) VALUES ('jobs'), ('jobs_done') ON CONFLICT DO NOTHING;
