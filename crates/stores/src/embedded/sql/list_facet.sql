-- Jobs with a facet, newest first, along the primary key of job_facets.
SELECT f.id FROM job_facets f CROSS JOIN jobs j ON j.namespace = f.namespace AND j.id = f.id
WHERE f.namespace = ?1 AND f.id <= ?2 AND (?3 >> j.state) & 1 AND f.name = ?4 AND f.value = ?5 ORDER BY f.id DESC
