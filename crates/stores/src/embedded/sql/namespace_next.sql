-- The next namespace that has jobs: steps over the primary key, however many jobs they hold.
SELECT namespace FROM jobs WHERE namespace > ?1 ORDER BY namespace LIMIT 1
