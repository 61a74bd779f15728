-- Primary key. Runs after lock_jobs, as a statement of its own: a job that was just being moved while lock_jobs waited for
-- it is seen here.
SELECT j.*
FROM unnest($1::text[], $2::uuid[]) AS k (namespace, id)
CROSS JOIN LATERAL (
    SELECT {done t}
    FROM windlass.jobs_done t
    WHERE t.namespace = k.namespace AND t.id = k.id
    FOR UPDATE
) j
