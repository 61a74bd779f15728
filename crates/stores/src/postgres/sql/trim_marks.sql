-- Primary key from its front: batches without events, long after anybody could ask whether they were committed.
DELETE FROM windlass.events WHERE id IN (
    SELECT id FROM (SELECT id, count, at FROM windlass.events ORDER BY id LIMIT $2) e
    WHERE e.count <= 0 AND e.at < $1
)
