-- Who waits for a job, from an id on, by primary key.
SELECT child FROM edges WHERE namespace = ?1 AND parent = ?2 AND child >= ?3 ORDER BY child LIMIT ?4
