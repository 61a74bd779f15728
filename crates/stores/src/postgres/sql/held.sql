-- jobs_held.
SELECT k.namespace, k.worker, j.id
FROM unnest($1::text[], $2::text[]) AS k (namespace, worker)
CROSS JOIN LATERAL (
    SELECT t.id FROM windlass.jobs t WHERE t.namespace = k.namespace AND t.worker = k.worker OFFSET 0
) j
ORDER BY k.namespace, k.worker, j.id
