-- Primary keys. One snapshot: a payload is in exactly one place.
SELECT k.namespace, k.id, p.data
FROM unnest($1::text[], $2::uuid[]) AS k (namespace, id)
CROSS JOIN LATERAL (
    SELECT j.payload AS data FROM windlass.jobs j
    WHERE j.namespace = k.namespace AND j.id = k.id AND j.payload IS NOT NULL
    UNION ALL
    SELECT d.payload FROM windlass.jobs_done d
    WHERE d.namespace = k.namespace AND d.id = k.id AND d.payload IS NOT NULL
    UNION ALL
    SELECT t.data FROM windlass.payloads t WHERE t.namespace = k.namespace AND t.id = k.id
) p
