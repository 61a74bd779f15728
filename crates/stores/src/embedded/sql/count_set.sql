-- Primary key.
INSERT INTO job_counts (namespace, definition, state, count, sum) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (namespace, definition, state) DO UPDATE SET count = excluded.count, sum = excluded.sum
