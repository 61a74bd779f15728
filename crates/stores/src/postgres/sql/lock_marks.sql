-- Primary key, sorted by the caller. The marks, and proposals for marks, that jobs were just queued below. Runs after the
-- jobs are written, so that whoever means to raise a mark either sees their writer at work or is seen by it.
SELECT FROM unnest($1::text[], $2::uuid[], $3::integer[], $4::bigint[]) AS k (namespace, lane, priority, seq)
CROSS JOIN LATERAL (
    SELECT FROM windlass.lane_marks t
    WHERE t.namespace = k.namespace AND t.lane = k.lane
      AND ((t.priority, t.seq) > (k.priority, k.seq) OR (t.next_priority, t.next_seq) > (k.priority, k.seq))
    FOR UPDATE
) m
