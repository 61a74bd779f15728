-- Primary key.
INSERT INTO windlass.results (namespace, id, data) SELECT * FROM unnest($1::text[], $2::uuid[], $3::bytea[])
