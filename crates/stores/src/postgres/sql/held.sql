-- jobs_held.
SELECT j.namespace, j.worker, j.id
FROM unnest($1::text[], $2::text[]) AS k (namespace, worker)
JOIN windlass.jobs j USING (namespace, worker)
ORDER BY j.namespace, j.worker, j.id
