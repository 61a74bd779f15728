-- Jobs of a run, newest first (jobs_run).
SELECT id FROM jobs INDEXED BY jobs_run
WHERE namespace = ?1 AND id <= ?2 AND (?3 >> state) & 1 AND run = ?4 ORDER BY id DESC
