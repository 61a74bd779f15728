-- Primary key, in the order in which they were sent. A size is known without reading what is large.
SELECT d.namespace, d.id, d.data
FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS k (namespace, id, at)
CROSS JOIN LATERAL (
    SELECT t.namespace, t.id, t.data FROM windlass.payloads t
    WHERE t.namespace = k.namespace AND t.id = k.id AND octet_length(t.data) <= $3 OFFSET 0
) d
ORDER BY k.at
