-- events_unnumbered, primary key of job_counts. Runs alone, under an advisory lock taken by a statement before it. Everything visible
-- is numbered in the order of ids; what becomes visible later gets later numbers, so that no reader ever skips an event. In pieces,
-- since nobody may have looked for a long time. What the batches counted is added up on the way; the bytes of
-- events (101) stay, so that they can be taken off when the events go.
WITH last AS (
    SELECT value FROM windlass.meta WHERE name = 'last_event'
), fresh AS (
    SELECT e.id, e.count, e.counts, coalesce((
        SELECT jsonb_agg(k)::text FROM jsonb_array_elements(nullif(e.counts, '')::jsonb) k WHERE (k ->> 2)::smallint = 101), '') AS kept,
        sum(e.count) OVER (ORDER BY e.id) AS total
    FROM (SELECT id, count, counts FROM windlass.events WHERE first_no = 0 AND count > 0 ORDER BY id LIMIT 5000) e
), numbered AS (
    UPDATE windlass.events e SET first_no = last.value + fresh.total - fresh.count + 1, counts = fresh.kept
    FROM fresh, last WHERE e.id = fresh.id AND e.first_no = 0
    RETURNING e.count, fresh.counts
), counted AS (
    INSERT INTO windlass.job_counts AS c (namespace, definition, state, count)
    SELECT k ->> 0, k ->> 1, (k ->> 2)::smallint, sum((k ->> 3)::bigint)
    FROM numbered n CROSS JOIN LATERAL jsonb_array_elements(nullif(n.counts, '')::jsonb) k
    GROUP BY 1, 2, 3 HAVING sum((k ->> 3)::bigint) <> 0 ORDER BY 1, 2, 3
    ON CONFLICT (namespace, definition, state) DO UPDATE SET count = c.count + excluded.count
)
UPDATE windlass.meta m SET value = m.value + n.total
FROM (SELECT sum(count) AS total FROM numbered) n
WHERE m.name = 'last_event' AND n.total > 0
