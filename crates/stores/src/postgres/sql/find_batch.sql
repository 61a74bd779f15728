-- Unique index on batch.
SELECT count FROM windlass.events WHERE batch = $1
