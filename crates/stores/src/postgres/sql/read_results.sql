-- Primary key, in the order in which they were sent.
SELECT d.namespace, d.id, d.result
FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS k (namespace, id, at)
CROSS JOIN LATERAL (
    SELECT t.namespace, t.id, t.result FROM windlass.jobs_done t
    WHERE t.namespace = k.namespace AND t.id = k.id AND t.result IS NOT NULL OFFSET 0
) d
ORDER BY k.at
