-- Primary keys. One snapshot: a job is in exactly one of the two tables.
SELECT namespace, id, lane, priority, seq, state, due, spec, live
FROM windlass.jobs WHERE namespace = $1 AND id = $2
UNION ALL
SELECT namespace, id, NULL, priority, seq, state, due, spec, live
FROM windlass.jobs_done WHERE namespace = $1 AND id = $2
