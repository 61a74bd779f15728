-- Primary key of jobs_done. Runs after insert_jobs: an id that was submitted, finished and moved by others since this batch
-- looked must not come to life a second time.
SELECT windlass.expect(count(*), 0)
FROM unnest($1::text[], $2::uuid[]) AS k (namespace, id)
CROSS JOIN LATERAL (
    SELECT FROM windlass.jobs_done t WHERE t.namespace = k.namespace AND t.id = k.id OFFSET 0
) d
