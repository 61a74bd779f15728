-- Primary key.
INSERT INTO windlass.logs (namespace, id, piece, attempt, at, data, stream)
SELECT * FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::integer[], $5::bigint[], $6::bytea[], $7::smallint[])
