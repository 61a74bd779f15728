-- Jobs of a namespace in one of the states few jobs are in, newest first (jobs_rare).
SELECT id FROM jobs INDEXED BY jobs_rare
WHERE namespace = ?1 AND id <= ?2 AND state = ?3 AND (state < 2 OR state > 5) ORDER BY id DESC LIMIT ?4
