-- The longest due jobs that nobody holds (jobs_due); one more than asked for tells when to look again. ?2 is before all
-- times: it makes the walk a search, so that a plan that scans stands out.
SELECT due, namespace, id FROM jobs INDEXED BY jobs_due WHERE due > ?2 AND worker IS NULL
ORDER BY due, namespace, id LIMIT ?1
