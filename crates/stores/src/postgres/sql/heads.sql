-- jobs_claim, once for each lane from its mark on: the lanes with the best fronts are found without locking, their first jobs are merged,
-- and the first $3 that nobody else has locked are taken from the first $4, in the order of the list. The count says how
-- many there were to choose from. The $4 lanes with the best fronts are enough, since each of them holds at least one of the
-- first $4 jobs. Adding nothing to the state keeps the planner from looking for an id in jobs_claim.
WITH fronts AS MATERIALIZED (
    SELECT l.lane, m.priority, m.seq
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
    LIMIT $4
), heads AS MATERIALIZED (
    SELECT h.id, h.priority, h.seq
    FROM fronts l
    CROSS JOIN LATERAL (
        SELECT j.id, j.priority, j.seq FROM windlass.jobs j
        WHERE j.namespace = $1 AND j.lane = l.lane AND j.state = 2 AND (j.priority, j.seq) >= (l.priority, l.seq)
        ORDER BY j.priority, j.seq
        LIMIT $4
    ) h
    ORDER BY h.priority, h.seq
    LIMIT $4
), taken AS (
    SELECT t.* FROM heads h
    CROSS JOIN LATERAL (
        SELECT j.*, j.ctid AS at FROM windlass.jobs j
        WHERE j.namespace = $1 AND j.id = h.id AND j.state + 0 = 2
        FOR UPDATE SKIP LOCKED
    ) t
    LIMIT $3
)
SELECT {job t}, COALESCE(t.payload, p.data), n.count, t.at
FROM (SELECT count(*) FROM heads) n
LEFT JOIN taken t ON true
LEFT JOIN LATERAL (
    SELECT q.data FROM windlass.payloads q WHERE t.payload IS NULL AND q.namespace = t.namespace AND q.id = t.id OFFSET 0
) p ON true
