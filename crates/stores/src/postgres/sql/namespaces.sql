-- Primary keys, one step for each namespace.
WITH RECURSIVE live AS (
    SELECT min(namespace) AS namespace FROM windlass.jobs
    UNION ALL
    SELECT (SELECT min(j.namespace) FROM windlass.jobs j WHERE j.namespace > live.namespace)
    FROM live WHERE live.namespace IS NOT NULL
), done AS (
    SELECT min(namespace) AS namespace FROM windlass.jobs_done
    UNION ALL
    SELECT (SELECT min(j.namespace) FROM windlass.jobs_done j WHERE j.namespace > done.namespace)
    FROM done WHERE done.namespace IS NOT NULL
)
SELECT namespace FROM live WHERE namespace IS NOT NULL
UNION
SELECT namespace FROM done WHERE namespace IS NOT NULL
