-- jobs_claim, read from the front of each lane, locking nothing. The caller holds what must not change meanwhile.
SELECT k.namespace, k.lane, j.id
FROM unnest($1::text[], $2::uuid[], $3::bigint[]) AS k (namespace, lane, count)
CROSS JOIN LATERAL (
    SELECT w.id, w.priority, w.seq FROM windlass.jobs w
    WHERE w.namespace = k.namespace AND w.lane = k.lane AND w.state = 2
    ORDER BY w.priority, w.seq
    LIMIT k.count
) j
ORDER BY k.namespace, k.lane, j.priority, j.seq
