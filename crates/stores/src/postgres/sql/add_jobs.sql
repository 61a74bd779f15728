-- New jobs of a batch that was decided without a look: primary key, sorted by the caller. Their places in the queue are counted
-- from one that is drawn here. An error where an id is taken; where the database's clock is not what it was taken for ($14;
-- none: not compared), by more than two seconds; and where no transaction was begun for this batch ($15), since all of its
-- statements are on their way together. Payloads that are too large for the row are $16. Gives the database's time and the place.
WITH drawn AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now, nextval('windlass.places') AS place
), sure AS MATERIALIZED (
    SELECT d.now, d.place, windlass.expect(
        CASE WHEN abs(d.now - $14::bigint) > 2000 OR current_setting('windlass.batch', true) IS DISTINCT FROM $15
             THEN 0 ELSE 1 END, 1)
    FROM drawn d
), new AS (
    INSERT INTO windlass.jobs ({insert}, payload)
    SELECT k.namespace, k.id, k.lane, k.run, k.spec, k.seq + s.place, k.due, k.priority, k.state, k.worker, k.wait_key, k.live,
           k.payload
    FROM sure s CROSS JOIN unnest({insert from 1}, $13::bytea[]) AS k ({insert}, payload)
), parts AS (
    INSERT INTO windlass.payloads (namespace, id, data)
    SELECT k.namespace, k.id, k.data FROM sure, unnest($1::text[], $2::uuid[], $16::bytea[]) AS k (namespace, id, data)
    WHERE k.data IS NOT NULL
)
SELECT s.now, s.place FROM sure s
