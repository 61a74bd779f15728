-- Primary key.
INSERT INTO windlass.attempts (namespace, id, number, body)
SELECT * FROM unnest($1::text[], $2::uuid[], $3::integer[], $4::text[])
