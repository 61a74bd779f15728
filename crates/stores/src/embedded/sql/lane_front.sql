-- The first jobs of one lane by id, from jobs_claim alone.
SELECT id FROM jobs INDEXED BY jobs_claim
WHERE namespace = ?1 AND lane = ?2 AND state = 2
ORDER BY priority, seq LIMIT ?3
