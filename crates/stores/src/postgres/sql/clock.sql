-- The database's own time, what is added to it to get the time that decides, and the time of the latest batch (primary key).
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
       (SELECT value FROM windlass.meta WHERE name = 'clock_offset'),
       (SELECT value FROM windlass.meta WHERE name = 'clock_since'),
       (SELECT at FROM windlass.events ORDER BY id DESC LIMIT 1)
