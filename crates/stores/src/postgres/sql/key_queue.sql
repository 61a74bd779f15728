-- jobs_wait, read from its front.
SELECT k.namespace, k.key, j.id
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS k (namespace, key, count)
CROSS JOIN LATERAL (
    SELECT w.id, w.priority, w.seq FROM windlass.jobs w
    WHERE w.namespace = k.namespace AND w.wait_key = k.key
    ORDER BY w.priority, w.seq
    LIMIT k.count
) j
ORDER BY k.namespace, k.key, j.priority, j.seq
