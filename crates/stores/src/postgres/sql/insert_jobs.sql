-- Primary key. Sorted by the caller; fewer rows than sent means that somebody else was faster.
WITH new AS (
    INSERT INTO windlass.jobs (namespace, id, lane, run, spec, seq, due, priority, state, worker, wait_key, live)
    SELECT * FROM unnest($1::text[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::bigint[], $7::bigint[],
                         $8::integer[], $9::smallint[], $10::text[], $11::text[], $12::text[])
    ON CONFLICT (namespace, id) DO NOTHING
    RETURNING 1
)
SELECT windlass.expect(count(*), cardinality($1)) FROM new
