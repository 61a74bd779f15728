-- Primary keys. One snapshot for all parts.
SELECT COALESCE(d.payload, j.payload, (SELECT data FROM windlass.payloads WHERE namespace = $1 AND id = $2)),
       d.result,
       ARRAY(SELECT body FROM windlass.attempts WHERE namespace = $1 AND id = $2 ORDER BY number)
           || CASE WHEN d.attempt IS NOT NULL THEN ARRAY[d.attempt] END,
       ARRAY(SELECT child FROM windlass.edges WHERE namespace = $1 AND parent = $2 ORDER BY child)
FROM (SELECT) one
LEFT JOIN windlass.jobs_done d ON d.namespace = $1 AND d.id = $2
LEFT JOIN windlass.jobs j ON j.namespace = $1 AND j.id = $2
WHERE d.id IS NOT NULL OR j.id IS NOT NULL
