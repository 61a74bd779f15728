-- Primary key and jobs_claim. As far as proposed, or to the first job that is pending before that.
WITH first AS (
    SELECT j.priority, j.seq FROM windlass.jobs j
    WHERE j.namespace = $1 AND j.lane = $2 AND j.state = 2
      AND (j.priority, j.seq) >= (
          (SELECT o.priority FROM windlass.lane_marks o WHERE o.namespace = $1 AND o.lane = $2),
          (SELECT o.seq FROM windlass.lane_marks o WHERE o.namespace = $1 AND o.lane = $2))
    ORDER BY j.priority, j.seq
    LIMIT 1
), place AS (
    SELECT CASE WHEN (f.priority, f.seq) < ($3::integer, $4::bigint) THEN f.priority ELSE $3 END AS priority,
           CASE WHEN (f.priority, f.seq) < ($3::integer, $4::bigint) THEN f.seq ELSE $4 END AS seq
    FROM (SELECT) one LEFT JOIN first f ON true
)
UPDATE windlass.lane_marks m
SET priority = p.priority, seq = p.seq, next_priority = NULL, next_seq = NULL, next_by = NULL
FROM place p
WHERE m.namespace = $1 AND m.lane = $2 AND m.next_by = $5
