-- Who waits for a job, by primary key.
SELECT child FROM edges WHERE namespace = ?1 AND parent = ?2 ORDER BY child
