-- Primary key. The version says whether the row is still the one that was read.
WITH gone AS (
    DELETE FROM windlass.records r
    USING unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS k (namespace, kind, key, old_version)
    WHERE r.namespace = k.namespace AND r.kind = k.kind AND r.key = k.key AND r.version = k.old_version
    RETURNING 1
)
SELECT windlass.expect(count(*), cardinality($1)) FROM gone
