-- Primary keys. One snapshot: a job is in exactly one of the two tables.
SELECT {job j}
FROM windlass.jobs j WHERE j.namespace = $1 AND j.id = $2
UNION ALL
SELECT {done d}
FROM windlass.jobs_done d WHERE d.namespace = $1 AND d.id = $2
