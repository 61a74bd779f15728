-- Transactions of batches that are under way. Each takes a place or writes events, and so holds a lock on one of these tables from before
-- it looks at anything until it ends.
SELECT DISTINCT l.virtualtransaction FROM pg_catalog.pg_locks l
WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND l.granted AND l.pid <> pg_backend_pid()
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
  AND l.relation IN ('windlass.places'::regclass, 'windlass.events'::regclass)
