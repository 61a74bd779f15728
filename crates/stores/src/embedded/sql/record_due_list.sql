-- The longest due records (records_due), as for jobs.
SELECT due, namespace, kind, key FROM records INDEXED BY records_due WHERE due > ?2
ORDER BY due, namespace, kind, key LIMIT ?1
