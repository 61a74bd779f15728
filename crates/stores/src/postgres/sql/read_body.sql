-- Primary keys. One snapshot for all parts.
SELECT (SELECT data FROM windlass.payloads WHERE namespace = $1 AND id = $2),
       (SELECT data FROM windlass.results WHERE namespace = $1 AND id = $2),
       ARRAY(SELECT body FROM windlass.attempts WHERE namespace = $1 AND id = $2 ORDER BY number),
       ARRAY(SELECT child FROM windlass.edges WHERE namespace = $1 AND parent = $2 ORDER BY child)
WHERE EXISTS (SELECT FROM windlass.jobs WHERE namespace = $1 AND id = $2)
   OR EXISTS (SELECT FROM windlass.jobs_done WHERE namespace = $1 AND id = $2)
