-- events_numbered from its front. Only a front without gaps goes, so that what is left is whole.
WITH front AS (
    SELECT id, first_no, count, at, sum(count) OVER (ORDER BY first_no) AS total
    FROM (SELECT * FROM windlass.events WHERE first_no > 0 ORDER BY first_no LIMIT $2) e
), old AS (
    SELECT id FROM front
    WHERE total <= greatest($2, (SELECT count FROM front ORDER BY first_no LIMIT 1))
      AND first_no < coalesce((SELECT min(first_no) FROM front WHERE at >= $1), 9223372036854775807)
), gone AS (
    DELETE FROM windlass.events WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING count
)
SELECT coalesce(sum(count), 0)::bigint FROM gone
