-- Primary key, sorted by the caller. A lane in use must not be collected, so its time is moved on.
INSERT INTO windlass.lanes (namespace, lane, tags, used_at, tx)
SELECT k.namespace, k.lane, k.tags,
       floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, pg_current_xact_id()::text::bigint
FROM unnest($1::text[], $2::uuid[], $3::text[]) AS k (namespace, lane, tags)
ON CONFLICT (namespace, lane) DO UPDATE SET used_at = excluded.used_at
