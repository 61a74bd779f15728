-- The transactions that have written jobs and are still open. Nobody but Windlass writes there.
SELECT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND relation = 'windlass.jobs'::regclass AND mode = 'RowExclusiveLock' AND granted
