-- Primary key of edges.
SELECT k.namespace, k.parent, e.child
FROM unnest($1::text[], $2::uuid[]) AS k (namespace, parent)
CROSS JOIN LATERAL (
    SELECT t.child FROM windlass.edges t WHERE t.namespace = k.namespace AND t.parent = k.parent OFFSET 0
) e
ORDER BY k.namespace, k.parent, e.child
