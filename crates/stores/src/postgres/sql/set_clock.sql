-- Two rows of a small table, under the lock of those who set the clock.
INSERT INTO windlass.meta (name, value) VALUES ('clock_offset', $1), ('clock_since', $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
