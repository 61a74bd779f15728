-- Primary key.
DELETE FROM windlass.record_facets WHERE ctid = ANY (ARRAY(
    SELECT f.ctid
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) AS k (namespace, kind, name, value, key)
    CROSS JOIN LATERAL (
        SELECT t.ctid FROM windlass.record_facets t
        WHERE t.namespace = k.namespace AND t.kind = k.kind AND t.name = k.name AND t.value = k.value AND t.key = k.key
        OFFSET 0
    ) f
))
