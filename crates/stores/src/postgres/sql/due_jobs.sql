-- jobs_due; rows that are due at the same time are sorted among themselves.
SELECT due, namespace, id FROM windlass.jobs WHERE due IS NOT NULL ORDER BY due, namespace, id LIMIT $1
