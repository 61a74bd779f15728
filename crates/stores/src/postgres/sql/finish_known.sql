-- A whole batch that only ends jobs this server knows, in one statement. Primary keys of jobs and of records, in the order of the keys, which the caller
-- has sorted. A row that is not what the decision was made by is left alone, and then so is everything: a missing row is an
-- error. So is a clock that is not what it was taken for ($15; none: not compared), by more than two seconds, and a transaction
-- that was not begun for this batch ($16; none: there is no other statement), and a record that was looked at and has another version
-- now ($22 to $25). Then the events, whose number is drawn when all
-- rows are locked. Gives the database's time.
WITH gone AS (
    DELETE FROM windlass.jobs j
    USING unnest($1::text[], $2::uuid[], $3::bytea[], $4::text[], {finish from 5}, {finish from 10})
          AS k (namespace, id, result, attempt, {finish}, was_seq, was_due, was_priority, was_state, was_live)
    WHERE j.ctid = (SELECT t.ctid FROM windlass.jobs t WHERE t.namespace = k.namespace AND t.id = k.id)
      AND (ROW (j.id, j.seq, j.due, j.priority, j.state, j.live) IS NOT DISTINCT FROM
           ROW (k.id, k.was_seq, k.was_due, k.was_priority, k.was_state, k.was_live)) IS TRUE
    RETURNING j.namespace, j.id, j.run, j.spec, {finish of k}, k.result, k.attempt, j.payload
), done AS (
    INSERT INTO windlass.jobs_done (namespace, id, run, spec, {finish}, result, attempt, payload)
    SELECT * FROM gone
    RETURNING 1
), looked AS MATERIALIZED (
    SELECT count(*) FROM unnest($22::text[], $23::text[], $24::text[], $25::bigint[]) AS w (namespace, kind, key, version)
    CROSS JOIN LATERAL (
        SELECT FROM windlass.records t
        WHERE t.namespace = w.namespace AND t.kind = w.kind AND t.key = w.key AND t.version + 0 = w.version
        OFFSET 0
    ) r
), clock AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
), sure AS MATERIALIZED (
    SELECT c.now, windlass.expect(
        CASE WHEN abs(c.now - $15::bigint) > 2000 OR l.count <> cardinality($22) THEN -1
             WHEN $16::text IS NOT NULL AND current_setting('windlass.batch', true) IS DISTINCT FROM $16 THEN -1
             ELSE d.count END, cardinality($1))
    FROM (SELECT count(*) FROM done) d CROSS JOIN looked l CROSS JOIN clock c
), told AS (
    INSERT INTO windlass.events (at, count, batch, body, counts, version) SELECT $17, $18, $19, $20, $21, 7 FROM sure
)
SELECT now FROM sure
