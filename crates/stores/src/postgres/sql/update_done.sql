-- Primary key; the rows are locked.
WITH changed AS (
    UPDATE windlass.jobs_done j
    SET {finish set}
    FROM unnest($1::text[], $2::uuid[], {finish from 3}) AS k (namespace, id, {finish})
    CROSS JOIN LATERAL (
        SELECT t.ctid FROM windlass.jobs_done t WHERE t.namespace = k.namespace AND t.id = k.id OFFSET 0
    ) at
    WHERE j.ctid = at.ctid
    RETURNING 1
)
SELECT windlass.expect(count(*), cardinality($1)) FROM changed
