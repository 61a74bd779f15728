-- Primary keys, in the order in which they were sent. One snapshot: a job is in exactly one of the two tables.
SELECT j.namespace, j.id, j.lane, j.priority, j.seq, j.state, j.due, j.spec, j.live
FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS k (namespace, id, at)
CROSS JOIN LATERAL (
    SELECT t.namespace, t.id, t.lane, t.priority, t.seq, t.state, t.due, t.spec, t.live
    FROM windlass.jobs t WHERE t.namespace = k.namespace AND t.id = k.id
    UNION ALL
    SELECT d.namespace, d.id, NULL, d.priority, d.seq, d.state, d.due, d.spec, d.live
    FROM windlass.jobs_done d WHERE d.namespace = k.namespace AND d.id = k.id
) j
ORDER BY k.at
