-- jobs_claim, then by place: a whole batch of claims whose jobs this server has read ahead, for an offer that one lane ($2) can
-- serve. The front is selected as in heads_one; it has to be the jobs that were decided on, in their order, and each as it was
-- known. Anything else is an error, and nothing is written. So is a record that was looked at and has another version now, and a
-- clock that is not what it was taken for ($21; none: not compared). Claims promise nothing, so the log is not waited for. Then
-- the events, whose number is drawn when all rows are locked. Gives the database's time.
WITH taken AS MATERIALIZED (
    SELECT ctid AS at FROM windlass.jobs
    WHERE namespace = $1 AND lane = ($2::uuid[])[1] AND state = 2
      AND (priority, seq) >= (
          COALESCE((SELECT m.priority FROM windlass.lane_marks m WHERE m.namespace = $1 AND m.lane = ($2::uuid[])[1]),
                   '-2147483648'::integer),
          COALESCE((SELECT m.seq FROM windlass.lane_marks m WHERE m.namespace = $1 AND m.lane = ($2::uuid[])[1]),
                   '-9223372036854775808'::bigint))
    ORDER BY priority, seq
    LIMIT $3
    FOR UPDATE SKIP LOCKED
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
