-- jobs_claim, then primary key: what claims for these lanes will want next, the first $3 in order, neither locked nor waited for. As in
-- heads. A payload of more than $4 bytes is not read; the last column says so.
WITH fronts AS MATERIALIZED (
    SELECT l.lane, f.priority, f.seq
    FROM unnest($2::uuid[]) AS l (lane)
    CROSS JOIN LATERAL (
        SELECT COALESCE(max(o.priority), '-2147483648'::integer) AS priority,
               COALESCE(max(o.seq), '-9223372036854775808'::bigint) AS seq
        FROM windlass.lane_marks o WHERE o.namespace = $1 AND o.lane = l.lane
    ) m
    CROSS JOIN LATERAL (
        SELECT j.priority, j.seq FROM windlass.jobs j
        WHERE j.namespace = $1 AND j.lane = l.lane AND j.state = 2 AND (j.priority, j.seq) >= (m.priority, m.seq)
        ORDER BY j.priority, j.seq
        LIMIT 1
    ) f
    ORDER BY f.priority, f.seq
    LIMIT $3
), heads AS MATERIALIZED (
    SELECT h.*
    FROM fronts l
    CROSS JOIN LATERAL (
        SELECT j.* FROM windlass.jobs j
        WHERE j.namespace = $1 AND j.lane = l.lane AND j.state = 2 AND (j.priority, j.seq) >= (l.priority, l.seq)
        ORDER BY j.priority, j.seq
        LIMIT $3
    ) h
    ORDER BY h.priority, h.seq
    LIMIT $3
)
SELECT {job h}, CASE WHEN octet_length(p.data) <= $4 THEN p.data ELSE h.payload END, COALESCE(octet_length(p.data) > $4, false)
FROM heads h
LEFT JOIN LATERAL (
    SELECT q.data FROM windlass.payloads q WHERE h.payload IS NULL AND q.namespace = h.namespace AND q.id = h.id OFFSET 0
) p ON true
