-- Primary key. In key order, so that two batches that want the same records wait for each other in one direction only.
SELECT r.namespace, r.kind, r.key, r.version, r.parent, r.value, r.facets, r.due
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (namespace, kind, key)
JOIN windlass.records r USING (namespace, kind, key)
ORDER BY r.namespace, r.kind, r.key
FOR UPDATE OF r
