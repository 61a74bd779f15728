-- The highest id of a namespace, from the end of the primary key: a new id above it is known to be free.
SELECT id FROM jobs WHERE namespace = ?1 ORDER BY id DESC LIMIT 1
