-- A row for each job before a place in a lane, from jobs_claim alone, and no more than asked for.
SELECT 1 FROM jobs INDEXED BY jobs_claim
WHERE namespace = ?1 AND lane = ?2 AND state = 2 AND (priority, seq) < (?3, ?4)
LIMIT ?5
