-- A key's count must be the number of jobs that hold a place under it. A scan; only the check runs it.
WITH taken AS (
    SELECT j.namespace AS namespace, json_extract(i.spec, '$.concurrency.key') AS key, count(*) AS used
    FROM jobs j JOIN inputs i ON i.namespace = j.namespace AND i.id = j.id
    WHERE json_extract(j.live, '$.slot')
    GROUP BY 1, 2
), told AS (
    SELECT namespace, key, json_extract(value, '$.used') AS used FROM records WHERE kind = 'concurrency'
)
SELECT namespace || '/' || key FROM (
    SELECT namespace, key FROM (SELECT * FROM taken EXCEPT SELECT * FROM told)
    UNION
    SELECT namespace, key FROM (SELECT * FROM told EXCEPT SELECT * FROM taken)
) LIMIT ?1
