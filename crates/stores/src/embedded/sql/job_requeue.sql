-- Everything that can change, for the moves that redraw the place in the queue.
UPDATE jobs SET live = ?3, sum = ?4, state = ?5, due = ?6, worker = ?7, priority = ?8, seq = ?9, wait_key = ?10
WHERE namespace = ?1 AND id = ?2
