-- The time the batch is decided at, and the block of places in the queue that is its own.
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, nextval('windlass.places')
