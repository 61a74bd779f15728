-- Jobs a worker holds, newest first (jobs_held).
SELECT id FROM jobs INDEXED BY jobs_held
WHERE namespace = ?1 AND id <= ?2 AND (?3 >> state) & 1 AND worker = ?4 ORDER BY id DESC
