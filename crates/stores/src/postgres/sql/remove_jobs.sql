-- Primary keys; the rows are locked. Takes along everything that belongs to the jobs.
WITH k AS (
    SELECT * FROM unnest($1::text[], $2::uuid[]) AS k (namespace, id)
), p AS (DELETE FROM windlass.payloads t USING k WHERE t.namespace = k.namespace AND t.id = k.id
), r AS (DELETE FROM windlass.results t USING k WHERE t.namespace = k.namespace AND t.id = k.id
), a AS (DELETE FROM windlass.attempts t USING k WHERE t.namespace = k.namespace AND t.id = k.id
), e AS (DELETE FROM windlass.edges t USING k WHERE t.namespace = k.namespace AND t.parent = k.id
), l AS (DELETE FROM windlass.logs t USING k WHERE t.namespace = k.namespace AND t.id = k.id
), live AS (DELETE FROM windlass.jobs t USING k WHERE t.namespace = k.namespace AND t.id = k.id RETURNING 1
), done AS (DELETE FROM windlass.jobs_done t USING k WHERE t.namespace = k.namespace AND t.id = k.id RETURNING 1)
SELECT windlass.expect((SELECT count(*) FROM live) + (SELECT count(*) FROM done), cardinality($1))
