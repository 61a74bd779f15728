-- jobs_claim, lanes_tx, primary key of records: what has to hold where a waiting claim takes a new job and nothing was looked at.
-- Nothing waits in the lanes it can serve ($1, $2), its namespace ($9) has no lane that this server may not have read ($3), and the
-- records that were looked at have the same version ($4 to $7). Runs before the job is written, in a transaction that was begun for
-- this batch ($8). Anything else is an error. Gives no row: the first row of a batch tells the time.
SELECT windlass.expect(
    CASE WHEN current_setting('windlass.batch', true) IS DISTINCT FROM $8::text OR w.count + n.count > 0 THEN -1
         ELSE r.count END, cardinality($4))
FROM (
    SELECT count(*) FROM unnest($1::text[], $2::uuid[]) AS l (namespace, lane)
    CROSS JOIN LATERAL (
        SELECT COALESCE(max(o.priority), '-2147483648'::integer) AS priority,
               COALESCE(max(o.seq), '-9223372036854775808'::bigint) AS seq
        FROM windlass.lane_marks o WHERE o.namespace = l.namespace AND o.lane = l.lane
    ) m
    CROSS JOIN LATERAL (
        SELECT j.seq FROM windlass.jobs j
        WHERE j.namespace = l.namespace AND j.lane = l.lane AND j.state = 2
          AND (j.priority, j.seq) >= (m.priority, m.seq)
        ORDER BY j.priority, j.seq
        LIMIT 1
    ) f
) w
CROSS JOIN (
    SELECT count(*) FROM (SELECT FROM windlass.lanes l WHERE l.tx >= $3::bigint AND l.namespace = ANY ($9::text[]) LIMIT 1) l
) n
CROSS JOIN (
    SELECT count(*) FROM unnest($4::text[], $5::text[], $6::text[], $7::bigint[]) AS k (namespace, kind, key, version)
    CROSS JOIN LATERAL (
        SELECT FROM windlass.records t
        WHERE t.namespace = k.namespace AND t.kind = k.kind AND t.key = k.key AND t.version + 0 = k.version
        OFFSET 0
    ) t
) r
OFFSET 1
