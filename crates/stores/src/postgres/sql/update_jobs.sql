-- By place; the rows are locked. The id is compared in a way that no index can be used for, so that no plan prefers one.
WITH changed AS (
    UPDATE windlass.jobs j
    SET {update set}
    FROM unnest($1::tid[], $2::uuid[], {update from 3}) AS k (at, id, {update})
    WHERE j.ctid = k.at AND (j.id = k.id) IS TRUE
    RETURNING 1
)
SELECT windlass.expect(count(*), cardinality($1)) FROM changed
