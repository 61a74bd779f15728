-- The unfinished jobs of a run (jobs_run).
SELECT id FROM jobs INDEXED BY jobs_run WHERE namespace = ?1 AND run = ?2 AND state < 5 ORDER BY id
