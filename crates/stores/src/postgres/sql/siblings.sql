-- records_parent.
SELECT r.namespace, r.kind, r.parent, r.key
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (namespace, kind, parent)
JOIN windlass.records r USING (namespace, kind, parent)
ORDER BY r.namespace, r.kind, r.parent, r.key
