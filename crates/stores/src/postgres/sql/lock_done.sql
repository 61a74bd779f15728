-- Primary key. Runs after lock_jobs, as a statement of its own: a job that was just being moved while lock_jobs waited for
-- it is seen here.
SELECT j.namespace, j.id, NULL::uuid, j.priority, j.seq, j.state, j.due, j.spec, j.live
FROM unnest($1::text[], $2::uuid[]) AS k (namespace, id)
JOIN windlass.jobs_done j USING (namespace, id)
ORDER BY j.namespace, j.id
FOR UPDATE OF j
