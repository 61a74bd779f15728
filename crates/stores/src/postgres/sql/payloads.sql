-- Primary key.
SELECT p.namespace, p.id, p.data
FROM unnest($1::text[], $2::uuid[]) AS k (namespace, id)
JOIN windlass.payloads p USING (namespace, id)
