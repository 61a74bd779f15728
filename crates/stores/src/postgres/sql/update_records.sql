-- Primary key. The version says whether the row is still the one that was read.
WITH changed AS (
    UPDATE windlass.records r
    SET parent = k.parent, facets = k.facets, due = k.due, version = k.version, value = k.value
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::text[],
                $9::bigint[]) AS k (namespace, kind, key, parent, facets, due, version, value, old_version)
    CROSS JOIN LATERAL (
        SELECT t.ctid FROM windlass.records t
        WHERE t.namespace = k.namespace AND t.kind = k.kind AND t.key = k.key
        OFFSET 0
    ) at
    WHERE r.ctid = at.ctid AND r.version = k.old_version
    RETURNING 1
)
SELECT windlass.expect(count(*), cardinality($1)) FROM changed
