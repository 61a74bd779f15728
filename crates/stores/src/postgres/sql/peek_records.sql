-- Primary key. For facts that are only looked at.
SELECT r.namespace, r.kind, r.key, r.version, r.parent, r.value, r.facets, r.due
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (namespace, kind, key)
JOIN windlass.records r USING (namespace, kind, key)
