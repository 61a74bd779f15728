-- Primary key of edges, from an id on.
SELECT k.namespace, k.parent, k.first, e.child
FROM unnest($1::text[], $2::uuid[], $3::uuid[], $4::bigint[]) AS k (namespace, parent, first, count)
CROSS JOIN LATERAL (
    SELECT t.child FROM windlass.edges t
    WHERE t.namespace = k.namespace AND t.parent = k.parent AND t.child >= k.first
    ORDER BY t.child LIMIT k.count
) e
ORDER BY k.namespace, k.parent, k.first, e.child
