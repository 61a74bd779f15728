-- Primary key; the rows are locked. Changes no indexed column, so that the row stays on its page and no index is touched.
WITH changed AS (
    UPDATE windlass.jobs j SET live = k.live
    FROM unnest($1::text[], $2::uuid[], $3::text[]) AS k (namespace, id, live)
    WHERE j.namespace = k.namespace AND j.id = k.id
    RETURNING 1
)
SELECT windlass.expect(count(*), cardinality($1)) FROM changed
