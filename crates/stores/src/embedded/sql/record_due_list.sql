-- The longest due records (records_due).
SELECT due, namespace, kind, key FROM records INDEXED BY records_due WHERE due IS NOT NULL
ORDER BY due, namespace, kind, key LIMIT ?1
