-- How many of these transactions have not ended.
SELECT count(DISTINCT l.virtualtransaction) FROM pg_catalog.pg_locks l WHERE l.virtualtransaction = ANY ($1)
