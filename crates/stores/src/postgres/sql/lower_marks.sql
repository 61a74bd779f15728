-- Primary key; the rows are locked.
UPDATE windlass.lane_marks m
SET priority = CASE WHEN (m.priority, m.seq) > (k.priority, k.seq) THEN k.priority ELSE m.priority END,
    seq = CASE WHEN (m.priority, m.seq) > (k.priority, k.seq) THEN k.seq ELSE m.seq END,
    next_priority = CASE WHEN (m.next_priority, m.next_seq) > (k.priority, k.seq) THEN NULL ELSE m.next_priority END,
    next_seq = CASE WHEN (m.next_priority, m.next_seq) > (k.priority, k.seq) THEN NULL ELSE m.next_seq END,
    next_by = CASE WHEN (m.next_priority, m.next_seq) > (k.priority, k.seq) THEN NULL ELSE m.next_by END
FROM unnest($1::text[], $2::uuid[], $3::integer[], $4::bigint[]) AS k (namespace, lane, priority, seq)
CROSS JOIN LATERAL (
    SELECT t.ctid FROM windlass.lane_marks t
    WHERE t.namespace = k.namespace AND t.lane = k.lane
      AND ((t.priority, t.seq) > (k.priority, k.seq) OR (t.next_priority, t.next_seq) > (k.priority, k.seq))
    OFFSET 0
) at
WHERE m.ctid = at.ctid
