-- Primary key.
INSERT INTO windlass.job_facets (namespace, name, value, id)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[])
ON CONFLICT DO NOTHING
