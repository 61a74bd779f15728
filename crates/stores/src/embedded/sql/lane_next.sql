-- The first lane at or above a key that holds a pending job, with its head: steps from lane to lane over jobs_claim, however many
-- jobs they hold. Run once per lane when the store is opened.
SELECT namespace, lane, priority, seq, id FROM jobs INDEXED BY jobs_claim
WHERE state = 2 AND (namespace, lane) >= (?1, ?2)
ORDER BY namespace, lane, priority, seq LIMIT 1
