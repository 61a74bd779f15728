-- Primary keys; the rows are locked. Takes along everything that belongs to the jobs.
WITH k AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::uuid[]) AS k (namespace, id)
), p AS (DELETE FROM windlass.payloads WHERE ctid = ANY (ARRAY(SELECT at.ctid FROM k CROSS JOIN LATERAL (
    SELECT t.ctid FROM windlass.payloads t WHERE t.namespace = k.namespace AND t.id = k.id OFFSET 0) at))
), a AS (DELETE FROM windlass.attempts WHERE ctid = ANY (ARRAY(SELECT at.ctid FROM k CROSS JOIN LATERAL (
    SELECT t.ctid FROM windlass.attempts t WHERE t.namespace = k.namespace AND t.id = k.id OFFSET 0) at))
), e AS (DELETE FROM windlass.edges WHERE ctid = ANY (ARRAY(SELECT at.ctid FROM k CROSS JOIN LATERAL (
    SELECT t.ctid FROM windlass.edges t WHERE t.namespace = k.namespace AND t.parent = k.id OFFSET 0) at))
), l AS (DELETE FROM windlass.logs WHERE ctid = ANY (ARRAY(SELECT at.ctid FROM k CROSS JOIN LATERAL (
    SELECT t.ctid FROM windlass.logs t WHERE t.namespace = k.namespace AND t.id = k.id OFFSET 0) at))
), live AS (DELETE FROM windlass.jobs WHERE ctid = ANY (ARRAY(SELECT at.ctid FROM k CROSS JOIN LATERAL (
    SELECT t.ctid FROM windlass.jobs t WHERE t.namespace = k.namespace AND t.id = k.id OFFSET 0) at)) RETURNING 1
), done AS (DELETE FROM windlass.jobs_done WHERE ctid = ANY (ARRAY(SELECT at.ctid FROM k CROSS JOIN LATERAL (
    SELECT t.ctid FROM windlass.jobs_done t WHERE t.namespace = k.namespace AND t.id = k.id OFFSET 0) at)) RETURNING 1)
SELECT windlass.expect((SELECT count(*) FROM live) + (SELECT count(*) FROM done), cardinality($1))
