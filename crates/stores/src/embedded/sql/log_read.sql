-- Pieces of a job's log after one, by primary key.
SELECT piece, attempt, at, sum, data, stream FROM logs WHERE namespace = ?1 AND job = ?2 AND piece > ?3 ORDER BY piece
