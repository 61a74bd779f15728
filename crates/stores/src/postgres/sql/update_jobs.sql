-- By place; the rows are locked. The id is compared in a way that no index can be used for, so that no plan prefers one.
WITH changed AS (
    UPDATE windlass.jobs j
    SET seq = k.seq, due = k.due, priority = k.priority, state = k.state, worker = k.worker, wait_key = k.wait_key,
        live = k.live
    FROM unnest($1::tid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::integer[], $6::smallint[], $7::text[],
                $8::text[], $9::text[])
         AS k (at, id, seq, due, priority, state, worker, wait_key, live)
    WHERE j.ctid = k.at AND (j.id = k.id) IS TRUE
    RETURNING 1
)
SELECT windlass.expect(count(*), cardinality($1)) FROM changed
