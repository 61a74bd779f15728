-- jobs_claim, for an offer that one lane can serve: its front from its mark on, stepping over what other claims have locked.
SELECT {job j}, COALESCE(j.payload, p.data), j.at
FROM (
    SELECT *, ctid AS at FROM windlass.jobs
    WHERE namespace = $1 AND lane = $2 AND state = 2
      AND (priority, seq) >= (
          COALESCE((SELECT m.priority FROM windlass.lane_marks m WHERE m.namespace = $1 AND m.lane = $2),
                   '-2147483648'::integer),
          COALESCE((SELECT m.seq FROM windlass.lane_marks m WHERE m.namespace = $1 AND m.lane = $2),
                   '-9223372036854775808'::bigint))
    ORDER BY priority, seq
    LIMIT $3
    FOR UPDATE SKIP LOCKED
) j
LEFT JOIN LATERAL (
    SELECT q.data FROM windlass.payloads q WHERE j.payload IS NULL AND q.namespace = j.namespace AND q.id = j.id OFFSET 0
) p ON true
