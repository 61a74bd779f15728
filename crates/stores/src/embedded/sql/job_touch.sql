-- Renewals, progress, log counters: no indexed column is named, so no index is written.
UPDATE jobs SET live = ?3, sum = ?4 WHERE namespace = ?1 AND id = ?2
