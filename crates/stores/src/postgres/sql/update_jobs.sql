-- Primary key; the rows are locked.
WITH changed AS (
    UPDATE windlass.jobs j
    SET seq = k.seq, due = k.due, priority = k.priority, state = k.state, worker = k.worker, wait_key = k.wait_key,
        live = k.live
    FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::bigint[], $5::integer[], $6::smallint[], $7::text[],
                $8::text[], $9::text[])
         AS k (namespace, id, seq, due, priority, state, worker, wait_key, live)
    CROSS JOIN LATERAL (
        SELECT t.ctid FROM windlass.jobs t WHERE t.namespace = k.namespace AND t.id = k.id OFFSET 0
    ) at
    WHERE j.ctid = at.ctid
    RETURNING 1
)
SELECT windlass.expect(count(*), cardinality($1)) FROM changed
