-- By place; the rows are locked. Those that this batch has just made have no place yet and are found by primary key. Moves
-- finished jobs out of the hot table.
WITH gone AS (
    DELETE FROM windlass.jobs j
    USING unnest($1::text[], $2::uuid[], $3::bytea[], $4::text[], $5::tid[], {finish from 6})
          AS k (namespace, id, result, attempt, at, {finish})
    WHERE j.ctid = COALESCE(k.at, (
        SELECT t.ctid FROM windlass.jobs t WHERE t.namespace = k.namespace AND t.id = k.id
    )) AND (j.id = k.id) IS TRUE
    RETURNING j.namespace, j.id, j.run, j.spec, {finish of k}, k.result, k.attempt, j.payload
), done AS (
    INSERT INTO windlass.jobs_done (namespace, id, run, spec, {finish}, result, attempt, payload)
    SELECT * FROM gone
    RETURNING 1
)
SELECT windlass.expect(count(*), cardinality($1)) FROM done
