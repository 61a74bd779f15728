-- By place; the rows are locked. Changes no indexed column, so that the row stays on its page and no index is touched.
WITH changed AS (
    UPDATE windlass.jobs j SET live = k.live
    FROM unnest($1::tid[], $2::uuid[], $3::text[]) AS k (at, id, live)
    WHERE j.ctid = k.at AND (j.id = k.id) IS TRUE
    RETURNING 1
)
SELECT windlass.expect(count(*), cardinality($1)) FROM changed
