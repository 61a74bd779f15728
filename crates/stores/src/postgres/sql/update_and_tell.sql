-- A whole batch that only changes jobs, as claims do: update_jobs, then the events, whose number is drawn when all rows are locked.
WITH changed AS (
    UPDATE windlass.jobs j
    SET {update set}
    FROM unnest($1::tid[], $2::uuid[], {update from 3}) AS k (at, id, {update})
    WHERE j.ctid = k.at AND (j.id = k.id) IS TRUE
    RETURNING 1
), sure AS MATERIALIZED (
    SELECT windlass.expect(count(*), cardinality($1)) FROM changed
)
INSERT INTO windlass.events (at, count, batch, body, counts, version) SELECT $10, $11, $12, $13, $14, 7 FROM sure
