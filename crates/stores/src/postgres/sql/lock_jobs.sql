-- Primary key. In key order, so that two batches wait for each other in one direction only.
SELECT j.namespace, j.id, j.lane, j.priority, j.seq, j.state, j.due, j.spec, j.live
FROM unnest($1::text[], $2::uuid[]) AS k (namespace, id)
JOIN windlass.jobs j USING (namespace, id)
ORDER BY j.namespace, j.id
FOR UPDATE OF j
