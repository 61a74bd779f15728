-- A claim or an end: the place in the queue stays, so the key queue's index is not named.
UPDATE jobs SET live = ?3, sum = ?4, state = ?5, due = ?6, worker = ?7 WHERE namespace = ?1 AND id = ?2
