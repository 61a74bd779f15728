-- Primary key. One after the other in the order of the keys, which the caller has sorted, so that two batches that want the
-- same records wait for each other in one direction only.
SELECT r.*
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (namespace, kind, key)
CROSS JOIN LATERAL (
    SELECT t.namespace, t.kind, t.key, t.version, t.parent, t.value, t.facets, t.due
    FROM windlass.records t
    WHERE t.namespace = k.namespace AND t.kind = k.kind AND t.key = k.key
    FOR UPDATE
) r
