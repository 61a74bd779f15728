-- Jobs whose name begins with ?4, by name and then newest, the last first, along the primary key of job_facets: a name is
-- kept there under no name. ?5 and ?2 are where to begin.
SELECT f.id FROM job_facets f CROSS JOIN jobs j ON j.namespace = f.namespace AND j.id = f.id
WHERE f.namespace = ?1 AND (?3 >> j.state) & 1 AND f.name = '' AND f.value >= ?4 AND (f.value, f.id) <= (?5, ?2)
ORDER BY f.value DESC, f.id DESC
