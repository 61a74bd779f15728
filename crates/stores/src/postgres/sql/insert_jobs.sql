-- Primary key. Sorted by the caller; an error where somebody else was faster.
INSERT INTO windlass.jobs ({insert}, payload)
SELECT * FROM unnest({insert from 1}, $13::bytea[])
