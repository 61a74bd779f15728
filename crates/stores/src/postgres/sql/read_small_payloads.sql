-- Primary keys, in the order in which they were sent. One snapshot: a payload is in exactly one place. A size is known without
-- reading what is large.
SELECT k.namespace, k.id, p.data
FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS k (namespace, id, at)
CROSS JOIN LATERAL (
    SELECT j.payload AS data FROM windlass.jobs j
    WHERE j.namespace = k.namespace AND j.id = k.id AND octet_length(j.payload) <= $3
    UNION ALL
    SELECT d.payload FROM windlass.jobs_done d
    WHERE d.namespace = k.namespace AND d.id = k.id AND octet_length(d.payload) <= $3
    UNION ALL
    SELECT t.data FROM windlass.payloads t
    WHERE t.namespace = k.namespace AND t.id = k.id AND octet_length(t.data) <= $3
) p
ORDER BY k.at
