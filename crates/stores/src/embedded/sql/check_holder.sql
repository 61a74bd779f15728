-- Held jobs whose lease ends with a worker that is not there. A scan of jobs_held; only the check runs it.
SELECT 'job ' || j.namespace || '/' || hex(j.id) FROM jobs j
WHERE j.worker IS NOT NULL AND j.due IS NULL AND NOT EXISTS (
    SELECT 1 FROM records r WHERE r.namespace = j.namespace AND r.kind = 'worker' AND r.key = j.worker
)
LIMIT ?1
