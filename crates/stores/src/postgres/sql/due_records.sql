-- records_due.
SELECT due, namespace, kind, key FROM windlass.records
WHERE due IS NOT NULL ORDER BY due, namespace, kind, key LIMIT $1
