-- jobs_run. Finished jobs have left this table.
SELECT j.namespace, j.run, j.id
FROM unnest($1::text[], $2::uuid[]) AS k (namespace, run)
JOIN windlass.jobs j USING (namespace, run)
ORDER BY j.namespace, j.run, j.id
