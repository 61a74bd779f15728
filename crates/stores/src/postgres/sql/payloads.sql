-- Primary key.
SELECT k.namespace, k.id, p.data
FROM unnest($1::text[], $2::uuid[]) AS k (namespace, id)
CROSS JOIN LATERAL (
    SELECT t.data FROM windlass.payloads t WHERE t.namespace = k.namespace AND t.id = k.id OFFSET 0
) p
