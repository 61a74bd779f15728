-- What a worker holds (jobs_held).
SELECT id FROM jobs INDEXED BY jobs_held WHERE namespace = ?1 AND worker = ?2 ORDER BY id
