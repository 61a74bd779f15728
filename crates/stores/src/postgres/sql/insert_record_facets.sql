-- Primary key.
INSERT INTO windlass.record_facets (namespace, kind, name, value, key)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
ON CONFLICT DO NOTHING
