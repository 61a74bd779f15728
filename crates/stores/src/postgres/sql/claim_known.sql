-- The same as claim_known_one for an offer that several lanes can serve: the front is selected as in heads.
WITH fronts AS MATERIALIZED (
    SELECT l.lane, m.priority, m.seq
    FROM unnest($2::uuid[]) AS l (lane)
    CROSS JOIN LATERAL (
        SELECT COALESCE(max(o.priority), '-2147483648'::integer) AS priority,
               COALESCE(max(o.seq), '-9223372036854775808'::bigint) AS seq
        FROM windlass.lane_marks o WHERE o.namespace = $1 AND o.lane = l.lane
    ) m
    CROSS JOIN LATERAL (
        SELECT j.priority, j.seq FROM windlass.jobs j
        WHERE j.namespace = $1 AND j.lane = l.lane AND j.state = 2 AND (j.priority, j.seq) >= (m.priority, m.seq)
        ORDER BY j.priority, j.seq
        LIMIT 1
    ) f
    ORDER BY f.priority, f.seq
    LIMIT $3::bigint + 16
), heads AS MATERIALIZED (
    SELECT h.id, h.priority, h.seq
    FROM fronts l
    CROSS JOIN LATERAL (
        SELECT j.id, j.priority, j.seq FROM windlass.jobs j
        WHERE j.namespace = $1 AND j.lane = l.lane AND j.state = 2 AND (j.priority, j.seq) >= (l.priority, l.seq)
        ORDER BY j.priority, j.seq
        LIMIT $3::bigint + 16
    ) h
    ORDER BY h.priority, h.seq
    LIMIT $3::bigint + 16
), taken AS MATERIALIZED (
    SELECT t.at FROM heads h
    CROSS JOIN LATERAL (
        SELECT j.ctid AS at FROM windlass.jobs j
        WHERE j.namespace = $1 AND j.id = h.id AND j.state + 0 = 2
        FOR UPDATE SKIP LOCKED
    ) t
    LIMIT $3
), places AS MATERIALIZED (
    SELECT array_agg(at) AS at FROM taken
), changed AS (
    UPDATE windlass.jobs j
    SET {update set}
    FROM places p
    CROSS JOIN LATERAL unnest(p.at, $4::uuid[], {update from 5}, {finish from 12})
         AS k (at, id, {update}, was_seq, was_due, was_priority, was_state, was_live)
    WHERE j.ctid = k.at
      AND (ROW (j.id, j.seq, j.due, j.priority, j.state, j.live) IS NOT DISTINCT FROM
           ROW (k.id, k.was_seq, k.was_due, k.was_priority, k.was_state, k.was_live)) IS TRUE
    RETURNING 1
), looked AS MATERIALIZED (
    SELECT count(*) FROM unnest($17::text[], $18::text[], $19::text[], $20::bigint[]) AS w (namespace, kind, key, version)
    CROSS JOIN LATERAL (
        SELECT FROM windlass.records t
        WHERE t.namespace = w.namespace AND t.kind = w.kind AND t.key = w.key AND t.version + 0 = w.version
        OFFSET 0
    ) r
), clock AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
           set_config('synchronous_commit', 'off', true) AS eased
), sure AS MATERIALIZED (
    SELECT c.now, windlass.expect(
        CASE WHEN abs(c.now - $21::bigint) > 2000 OR c.eased IS NULL OR l.count <> cardinality($17) THEN -1
             ELSE d.count END, cardinality($4))
    FROM (SELECT count(*) FROM changed) d CROSS JOIN looked l CROSS JOIN clock c
), told AS (
    INSERT INTO windlass.events (at, count, batch, body, counts, version) SELECT $22, $23, $24, $25, $26, 7 FROM sure
)
SELECT now FROM sure
