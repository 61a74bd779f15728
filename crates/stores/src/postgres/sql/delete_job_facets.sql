-- Primary key.
DELETE FROM windlass.job_facets f
USING unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) AS k (namespace, name, value, id)
WHERE f.namespace = k.namespace AND f.name = k.name AND f.value = k.value AND f.id = k.id
