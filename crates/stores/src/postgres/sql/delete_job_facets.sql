-- Primary key.
DELETE FROM windlass.job_facets WHERE ctid = ANY (ARRAY(
    SELECT f.ctid
    FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) AS k (namespace, name, value, id)
    CROSS JOIN LATERAL (
        SELECT t.ctid FROM windlass.job_facets t
        WHERE t.namespace = k.namespace AND t.name = k.name AND t.value = k.value AND t.id = k.id
        OFFSET 0
    ) f
))
