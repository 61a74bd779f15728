-- Primary key, and events_unnumbered: what is added up, and what is not yet.
SELECT state, sum(count)::bigint FROM (
    SELECT state, count FROM windlass.job_counts WHERE namespace = $1 AND definition = $2
    UNION ALL
    SELECT (k ->> 2)::smallint, (k ->> 3)::bigint
    FROM windlass.events e CROSS JOIN LATERAL jsonb_array_elements(nullif(e.counts, '')::jsonb) k
    WHERE e.first_no = 0 AND e.count > 0 AND k ->> 0 = $1 AND k ->> 1 = $2
) c GROUP BY state
