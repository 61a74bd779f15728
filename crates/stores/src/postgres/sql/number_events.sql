-- events_unnumbered. Runs alone, under an advisory lock taken by a statement before it. Everything visible is numbered in
-- the order of ids; what becomes visible later gets later numbers, so that no reader ever skips an event. In pieces, since
-- nobody may have looked for a long time.
WITH last AS (
    SELECT value FROM windlass.meta WHERE name = 'last_event'
), fresh AS (
    SELECT e.id, e.count, sum(e.count) OVER (ORDER BY e.id) AS total
    FROM (SELECT id, count FROM windlass.events WHERE first_no = 0 AND count > 0 ORDER BY id LIMIT 5000) e
), numbered AS (
    UPDATE windlass.events e SET first_no = last.value + fresh.total - fresh.count + 1
    FROM fresh, last WHERE e.id = fresh.id AND e.first_no = 0
    RETURNING e.count
)
UPDATE windlass.meta m SET value = m.value + n.total
FROM (SELECT sum(count) AS total FROM numbered) n
WHERE m.name = 'last_event' AND n.total > 0
