-- jobs_claim, for an offer that one lane can serve: its front, stepping over what other claims have locked.
SELECT j.namespace, j.id, j.lane, j.priority, j.seq, j.state, j.due, j.spec, j.live, p.data
FROM (
    SELECT * FROM windlass.jobs
    WHERE namespace = $1 AND lane = $2 AND state = 2
    ORDER BY priority, seq
    LIMIT $3
    FOR UPDATE SKIP LOCKED
) j
LEFT JOIN LATERAL (
    SELECT q.data FROM windlass.payloads q WHERE q.namespace = j.namespace AND q.id = j.id OFFSET 0
) p ON true
