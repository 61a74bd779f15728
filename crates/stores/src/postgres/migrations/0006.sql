-- A small payload stands in its job's row and goes along with it, so that it needs no row, no index entry and no look of its own.
-- Jobs that are there already keep theirs in `payloads`, as do jobs with larger ones.
ALTER TABLE windlass.jobs ADD COLUMN IF NOT EXISTS payload bytea;
ALTER TABLE windlass.jobs_done ADD COLUMN IF NOT EXISTS payload bytea;

-- The claimed version of a row is larger than the pending one. If it finds room on the same page, only the difference is logged.
ALTER TABLE windlass.jobs SET (fillfactor = 40);

-- Listing by a state that few jobs are in, however many wait.
CREATE INDEX IF NOT EXISTS jobs_rare ON windlass.jobs (namespace, state, id) WHERE state < 2;

-- Bodies of events are compressed at every batch and seldom read. PostgreSQL can be built without lz4.
DO $$ BEGIN
    ALTER TABLE windlass.events ALTER COLUMN body SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN NULL;
END $$;

-- The schema that the program knew which wrote a batch. A program before this version would hand out and end jobs without their
-- payloads. It does not name `version`, so that nothing it writes is accepted.
ALTER TABLE windlass.events ADD COLUMN IF NOT EXISTS version smallint NOT NULL DEFAULT 5;
ALTER TABLE windlass.events ALTER COLUMN version DROP DEFAULT;
