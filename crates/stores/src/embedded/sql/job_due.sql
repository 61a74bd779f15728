-- The sweep found nothing to do and moves the due time on.
UPDATE jobs SET live = ?3, sum = ?4, due = ?5 WHERE namespace = ?1 AND id = ?2
