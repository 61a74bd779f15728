-- Primary key; the rows are locked. Changes no indexed column, so that the row stays on its page and no index is touched.
WITH changed AS (
    UPDATE windlass.jobs j SET live = k.live
    FROM unnest($1::text[], $2::uuid[], $3::text[]) AS k (namespace, id, live)
    CROSS JOIN LATERAL (
        SELECT t.ctid FROM windlass.jobs t WHERE t.namespace = k.namespace AND t.id = k.id OFFSET 0
    ) at
    WHERE j.ctid = at.ctid
    RETURNING 1
)
SELECT windlass.expect(count(*), cardinality($1)) FROM changed
