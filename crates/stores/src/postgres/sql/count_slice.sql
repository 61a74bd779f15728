-- Primary key of the table `part`: the next jobs after one. What was submitted is read by us: the database reads no text with a zero.
SELECT j.namespace, j.id, j.state, j.spec FROM windlass.part j
WHERE (j.namespace, j.id) > ($1, $2) ORDER BY j.namespace, j.id LIMIT $3
