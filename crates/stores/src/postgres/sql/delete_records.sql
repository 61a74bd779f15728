-- Primary key. The version says whether the row is still the one that was read.
WITH gone AS (
    DELETE FROM windlass.records WHERE ctid = ANY (ARRAY(
        SELECT r.ctid
        FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS k (namespace, kind, key, old_version)
        CROSS JOIN LATERAL (
            SELECT t.ctid, t.version FROM windlass.records t
            WHERE t.namespace = k.namespace AND t.kind = k.kind AND t.key = k.key
            OFFSET 0
        ) r
        WHERE r.version = k.old_version
    ))
    RETURNING 1
)
SELECT windlass.expect(count(*), cardinality($1)) FROM gone
