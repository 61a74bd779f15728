-- The last statement before the commit: its number is drawn when all locks are held, so that of two batches that touched
-- the same row the later one has the higher number. The batch's id is the proof that it was committed.
INSERT INTO windlass.events (at, count, batch, body, counts, version) VALUES ($1, $2, $3, $4, $5, 7)
