-- Beside the jobs in each state, `job_counts` has how many bytes a namespace keeps: `state` 100 for jobs and records, 101 for events. The
-- bytes of events stay in `events.counts` once they are added up, and are taken off when the events go.
--
-- A program before this version would not count what it does. It writes version 6, so that nothing it writes is accepted.
LOCK TABLE windlass.events IN ACCESS EXCLUSIVE MODE;
UPDATE windlass.events SET version = 7 WHERE first_no = 0;
ALTER TABLE windlass.events DROP CONSTRAINT IF EXISTS events_version;
ALTER TABLE windlass.events ADD CONSTRAINT events_version CHECK (version >= 7) NOT VALID;

INSERT INTO windlass.job_counts (namespace, definition, state, count)
SELECT namespace, '', 100, sum((octet_length(key) + octet_length(value) + 255) / 256 * 256) FROM windlass.records GROUP BY 1
ON CONFLICT (namespace, definition, state) DO UPDATE SET count = excluded.count;

-- While the bytes of the jobs that were there before are being counted: the last one of each table that is.
CREATE TABLE IF NOT EXISTS windlass.job_bytes_begun (LIKE windlass.job_counts_begun INCLUDING ALL);
DELETE FROM windlass.job_bytes_begun;
INSERT INTO windlass.job_bytes_begun (part) VALUES ('jobs'), ('jobs_done');
