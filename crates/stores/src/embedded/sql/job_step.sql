-- Claimed to running and the like: due time and holder stay, so their indexes are not named.
UPDATE jobs SET live = ?3, sum = ?4, state = ?5 WHERE namespace = ?1 AND id = ?2
