-- Primary key. Sorted by the caller; fewer rows than sent means that somebody else was faster.
WITH new AS (
    INSERT INTO windlass.records (namespace, kind, key, parent, facets, due, version, value)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
                         $8::text[])
    ON CONFLICT (namespace, kind, key) DO NOTHING
    RETURNING 1
)
SELECT windlass.expect(count(*), cardinality($1)) FROM new
