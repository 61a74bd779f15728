-- Primary keys of both: the next ?3 jobs after one, with what was submitted.
SELECT j.namespace, j.id, j.state, i.spec FROM jobs j CROSS JOIN inputs i ON i.namespace = j.namespace AND i.id = j.id
WHERE (j.namespace, j.id) > (?1, ?2)
ORDER BY j.namespace, j.id
LIMIT ?3
