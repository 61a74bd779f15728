-- Primary key. Nobody may write these before the batch is committed, but others may share them. In the order of the keys, as
-- where they are locked for writing.
SELECT r.*
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (namespace, kind, key)
CROSS JOIN LATERAL (
    SELECT t.namespace, t.kind, t.key, t.version, t.parent, t.value, t.facets, t.due
    FROM windlass.records t
    WHERE t.namespace = k.namespace AND t.kind = k.kind AND t.key = k.key
    FOR SHARE
) r
