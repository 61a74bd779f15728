-- Pending jobs of a namespace, from jobs_claim alone, in no useful order.
SELECT id FROM jobs INDEXED BY jobs_claim WHERE namespace = ?1 AND state = 2 LIMIT ?2
