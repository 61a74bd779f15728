-- Who waits for a concurrency key, in claim order (jobs_wait_key).
SELECT id FROM jobs INDEXED BY jobs_wait_key
WHERE namespace = ?1 AND wait_key = ?2
ORDER BY priority, seq LIMIT ?3
