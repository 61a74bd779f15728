-- Primary key of edges.
SELECT e.namespace, e.parent, e.child
FROM unnest($1::text[], $2::uuid[]) AS k (namespace, parent)
JOIN windlass.edges e USING (namespace, parent)
ORDER BY e.namespace, e.parent, e.child
