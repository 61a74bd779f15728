-- The longest due jobs (jobs_due); one more than asked for tells when to look again.
SELECT due, namespace, id FROM jobs INDEXED BY jobs_due WHERE due IS NOT NULL
ORDER BY due, namespace, id LIMIT ?1
