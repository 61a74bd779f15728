-- jobs_claim. Waits for whoever has locked the first of these lanes' jobs, because a claim may say "nothing there" only
-- when that is certain. One row only: the fewer locks, the fewer ways to wait for each other.
WITH heads AS MATERIALIZED (
    SELECT h.id, h.priority, h.seq
    FROM unnest($2::uuid[]) AS l (lane)
    CROSS JOIN LATERAL (
        SELECT COALESCE(max(o.priority), '-2147483648'::integer) AS priority,
               COALESCE(max(o.seq), '-9223372036854775808'::bigint) AS seq
        FROM windlass.lane_marks o WHERE o.namespace = $1 AND o.lane = l.lane
    ) m
    CROSS JOIN LATERAL (
        SELECT j.id, j.priority, j.seq FROM windlass.jobs j
        WHERE j.namespace = $1 AND j.lane = l.lane AND j.state = 2 AND (j.priority, j.seq) >= (m.priority, m.seq)
          AND j.id <> ALL ($3::uuid[])
        ORDER BY j.priority, j.seq
        LIMIT 1
    ) h
    ORDER BY h.priority, h.seq
    LIMIT 1
)
SELECT t.id FROM heads h
CROSS JOIN LATERAL (
    SELECT j.id FROM windlass.jobs j WHERE j.namespace = $1 AND j.id = h.id AND j.state + 0 = 2 FOR UPDATE
) t
