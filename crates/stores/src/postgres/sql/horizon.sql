-- Everything added by transactions before this one is visible to the statements that follow.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint
