-- The next namespace that has records: steps over the primary key, however many records they hold.
SELECT namespace FROM records WHERE namespace > ?1 ORDER BY namespace LIMIT 1
