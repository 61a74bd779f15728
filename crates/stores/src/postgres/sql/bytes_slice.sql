-- Primary key of the table `part`, and of the tables that belong to it: the next jobs after one are charged with what they keep. What a
-- job says about itself is a JSON text, and the database reads none with a zero in it: so the number is put in at its end.
WITH slice AS MATERIALIZED (
    SELECT j.namespace, j.id,
           1024 + octet_length(j.spec) + windlass.own + coalesce(octet_length(j.payload), 0)
               + coalesce((SELECT octet_length(p.data) FROM windlass.payloads p
                           WHERE p.namespace = j.namespace AND p.id = j.id), 0)
               + coalesce((SELECT sum(octet_length(a.body)) FROM windlass.attempts a
                           WHERE a.namespace = j.namespace AND a.id = j.id), 0) AS body,
           coalesce((SELECT sum(octet_length(l.data)) FROM windlass.logs l
                     WHERE l.namespace = j.namespace AND l.id = j.id), 0) AS log
    FROM windlass.part j
    WHERE (j.namespace, j.id) > ($1, $2) ORDER BY j.namespace, j.id LIMIT $3
), charged AS (
    UPDATE windlass.part j
    SET live = left(j.live, -1) || CASE j.live WHEN '{}' THEN '' ELSE ',' END
               || '"bytes":{"b":' || s.body || ',"l":' || s.log || '}}'
    FROM slice s
    WHERE j.namespace = s.namespace AND j.id = s.id AND strpos(j.live, '"bytes":{"b":') = 0
    RETURNING j.namespace, s.body + s.log AS bytes
), added AS (
    INSERT INTO windlass.job_counts AS c (namespace, definition, state, count)
    SELECT namespace, '', 100, sum(bytes) FROM charged GROUP BY 1 ORDER BY 1
    ON CONFLICT (namespace, definition, state) DO UPDATE SET count = c.count + excluded.count
)
SELECT namespace, id FROM slice ORDER BY namespace, id
