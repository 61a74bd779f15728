-- The front of one lane, from jobs_claim alone.
SELECT priority, seq, id FROM jobs INDEXED BY jobs_claim
WHERE namespace = ?1 AND lane = ?2 AND state = 2
ORDER BY priority, seq LIMIT ?3
