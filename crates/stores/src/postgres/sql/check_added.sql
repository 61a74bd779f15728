-- Runs after add_jobs, and sees what was committed until now. Primary key of jobs_done: an id that was submitted, finished and
-- moved by others must not come to life a second time. Primary key of lane_marks: a job below its lane's mark, or below what
-- is proposed for it, is queued by statements that move the mark.
SELECT windlass.expect(count(*), 0)
FROM unnest($1::text[], $2::uuid[], $3::uuid[], $4::integer[]) AS k (namespace, id, lane, priority)
CROSS JOIN LATERAL (
    (SELECT FROM windlass.jobs_done t WHERE t.namespace = k.namespace AND t.id = k.id OFFSET 0)
    UNION ALL
    (SELECT FROM windlass.lane_marks m WHERE m.namespace = k.namespace AND m.lane = k.lane
       AND ((m.priority, m.seq) > (k.priority, currval('windlass.places'))
            OR (m.next_priority, m.next_seq) > (k.priority, currval('windlass.places'))) OFFSET 0)
) wrong
