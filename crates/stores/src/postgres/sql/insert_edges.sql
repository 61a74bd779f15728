-- Primary key.
INSERT INTO windlass.edges (namespace, parent, child)
SELECT * FROM unnest($1::text[], $2::uuid[], $3::uuid[])
ON CONFLICT DO NOTHING
