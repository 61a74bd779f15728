-- Primary keys, in the order in which they were sent. One snapshot: a job is in exactly one of the two tables.
SELECT {job j}
FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS k (namespace, id, at)
CROSS JOIN LATERAL (
    SELECT {job t}
    FROM windlass.jobs t WHERE t.namespace = k.namespace AND t.id = k.id
    UNION ALL
    SELECT {done d}
    FROM windlass.jobs_done d WHERE d.namespace = k.namespace AND d.id = k.id
) j
ORDER BY k.at
