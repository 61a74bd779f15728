-- Runs after add_jobs, and sees what was committed until now. Primary key of jobs_done: an id that was submitted, finished and
-- moved by others must not come to life a second time. Primary key of lane_marks, once for each lane ($3 to $5): a job below its
-- lane's mark, or below what is proposed for it, is queued by statements that move the mark.
SELECT windlass.expect(count(*), 0) FROM (
    SELECT FROM unnest($1::text[], $2::uuid[]) AS k (namespace, id)
    CROSS JOIN LATERAL (
        SELECT FROM windlass.jobs_done t WHERE t.namespace = k.namespace AND t.id = k.id OFFSET 0
    ) d
    UNION ALL
    SELECT FROM unnest($3::text[], $4::uuid[], $5::integer[]) AS l (namespace, lane, priority)
    CROSS JOIN LATERAL (
        SELECT FROM windlass.lane_marks m WHERE m.namespace = l.namespace AND m.lane = l.lane
          AND ((m.priority, m.seq) > (l.priority, currval('windlass.places'))
               OR (m.next_priority, m.next_seq) > (l.priority, currval('windlass.places'))) OFFSET 0
    ) m
) wrong
