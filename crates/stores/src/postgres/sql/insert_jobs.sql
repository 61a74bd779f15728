-- Primary key. Sorted by the caller; fewer rows than sent means that somebody else was faster.
WITH new AS (
    INSERT INTO windlass.jobs ({insert})
    SELECT * FROM unnest({insert from 1})
    ON CONFLICT (namespace, id) DO NOTHING
    RETURNING 1
)
SELECT windlass.expect(count(*), cardinality($1)) FROM new
