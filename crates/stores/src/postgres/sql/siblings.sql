-- records_parent.
SELECT k.namespace, k.kind, k.parent, r.key
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (namespace, kind, parent)
CROSS JOIN LATERAL (
    SELECT t.key FROM windlass.records t
    WHERE t.namespace = k.namespace AND t.kind = k.kind AND t.parent = k.parent
    OFFSET 0
) r
ORDER BY k.namespace, k.kind, k.parent, r.key
