-- The head of the first queue (a lane and a priority) at or above a key with a pending job: steps over jobs_claim, however many jobs they hold.
SELECT namespace, lane, priority, seq, id FROM jobs INDEXED BY jobs_claim
WHERE state = 2 AND (namespace, lane, priority) >= (?1, ?2, ?3)
ORDER BY namespace, lane, priority, seq LIMIT 1
