-- Held jobs of a namespace, from jobs_held, in no useful order. The bits in ?3 tell claimed from running.
SELECT id FROM jobs INDEXED BY jobs_held
WHERE namespace = ?1 AND worker IS NOT NULL AND (?3 >> state) & 1 LIMIT ?2
