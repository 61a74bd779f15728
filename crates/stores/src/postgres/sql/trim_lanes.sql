-- lanes is small beside jobs; jobs_claim says whether anything is queued. A job that waits elsewhere registers its lane
-- again when it becomes pending. A lane that nobody used for an hour goes: servers confirm a lane in use far more often.
WITH gone AS (
    DELETE FROM windlass.lanes l USING (
        SELECT o.namespace, o.lane FROM windlass.lanes o
        WHERE o.used_at < floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 3600000
          AND NOT EXISTS (SELECT FROM windlass.jobs j
                          WHERE j.namespace = o.namespace AND j.lane = o.lane AND j.state = 2)
        LIMIT $1
    ) old
    WHERE l.namespace = old.namespace AND l.lane = old.lane
      AND l.used_at < floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 3600000
    RETURNING l.namespace, l.lane
), marks AS (
    DELETE FROM windlass.lane_marks m USING gone WHERE m.namespace = gone.namespace AND m.lane = gone.lane
)
SELECT gone.lane, total.lanes FROM (SELECT count(*) AS lanes FROM windlass.lanes) total LEFT JOIN gone ON true
