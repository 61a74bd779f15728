-- Primary key. One after the other in the order of the keys, which the caller has sorted, so that two batches wait for
-- each other in one direction only.
SELECT j.*
FROM unnest($1::text[], $2::uuid[]) AS k (namespace, id)
CROSS JOIN LATERAL (
    SELECT {job t}, t.ctid
    FROM windlass.jobs t
    WHERE t.namespace = k.namespace AND t.id = k.id
    FOR UPDATE
) j
