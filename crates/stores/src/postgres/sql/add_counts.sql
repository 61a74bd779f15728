-- Primary key. Only for what has no events of its own: jobs that are forgotten, and jobs from another store.
INSERT INTO windlass.job_counts AS c (namespace, definition, state, count)
SELECT * FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bigint[]) k ORDER BY 1, 2, 3
ON CONFLICT (namespace, definition, state) DO UPDATE SET count = c.count + excluded.count
