-- jobs_run. Finished jobs have left this table.
SELECT k.namespace, k.run, j.id
FROM unnest($1::text[], $2::uuid[]) AS k (namespace, run)
CROSS JOIN LATERAL (
    SELECT t.id FROM windlass.jobs t WHERE t.namespace = k.namespace AND t.run = k.run OFFSET 0
) j
ORDER BY k.namespace, k.run, j.id
