-- Primary key: neighbouring pieces of the logs of locked jobs.
DELETE FROM windlass.logs WHERE ctid = ANY (ARRAY(
    SELECT at.ctid
    FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::bigint[]) AS k (namespace, id, first, last)
    CROSS JOIN LATERAL (
        SELECT t.ctid FROM windlass.logs t
        WHERE t.namespace = k.namespace AND t.id = k.id AND t.piece BETWEEN k.first AND k.last OFFSET 0
    ) at
))
