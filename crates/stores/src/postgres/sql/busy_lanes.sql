-- jobs_claim, one step for each lane of the namespace that has work, with the place of its first job.
WITH RECURSIVE busy AS (
    (SELECT lane, priority, seq FROM windlass.jobs
     WHERE namespace = $1 AND state = 2
     ORDER BY lane, priority, seq LIMIT 1)
    UNION ALL
    SELECT n.lane, n.priority, n.seq
    FROM busy b CROSS JOIN LATERAL (
        SELECT j.lane, j.priority, j.seq FROM windlass.jobs j
        WHERE j.namespace = $1 AND j.lane > b.lane AND j.state = 2
        ORDER BY j.lane, j.priority, j.seq LIMIT 1
    ) n
)
SELECT lane, priority, seq FROM busy LIMIT $2
