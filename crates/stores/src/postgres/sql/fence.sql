-- Unique index on batch. Waits for the batch if it is still under way; once this row is there, it can never commit.
INSERT INTO windlass.events (at, count, batch, body, counts, version) VALUES ($1, -1, $2, '', '', 7) ON CONFLICT (batch) DO NOTHING
