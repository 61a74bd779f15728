-- Primary key.
DELETE FROM windlass.record_facets f
USING unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) AS k (namespace, kind, name, value, key)
WHERE f.namespace = k.namespace AND f.kind = k.kind AND f.name = k.name AND f.value = k.value AND f.key = k.key
