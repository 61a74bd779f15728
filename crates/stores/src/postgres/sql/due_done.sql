-- jobs_done_due: retention.
SELECT due, namespace, id FROM windlass.jobs_done WHERE due IS NOT NULL ORDER BY due, namespace, id LIMIT $1
