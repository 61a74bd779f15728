-- events_numbered from its front, and the primary key of job_counts for the bytes that go. Only a front without gaps goes, so that what is left is whole.
WITH front AS (
    SELECT id, first_no, count, at, sum(count) OVER (ORDER BY first_no) AS total
    FROM (SELECT * FROM windlass.events WHERE first_no > 0 ORDER BY first_no LIMIT $2) e
), old AS (
    SELECT id FROM front
    WHERE total <= greatest($2, (SELECT count FROM front ORDER BY first_no LIMIT 1))
      AND first_no < coalesce((SELECT min(first_no) FROM front WHERE at >= $1), 9223372036854775807)
), gone AS (
    DELETE FROM windlass.events WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING count, counts
), less AS (
    INSERT INTO windlass.job_counts AS c (namespace, definition, state, count)
    SELECT k ->> 0, '', 101, -sum((k ->> 3)::bigint)
    FROM gone g CROSS JOIN LATERAL jsonb_array_elements(nullif(g.counts, '')::jsonb) k
    GROUP BY 1 ORDER BY 1
    ON CONFLICT (namespace, definition, state) DO UPDATE SET count = c.count + excluded.count
)
SELECT coalesce(sum(count), 0)::bigint FROM gone
