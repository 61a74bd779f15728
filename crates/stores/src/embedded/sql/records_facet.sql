-- Records of a kind with a facet, and under a parent if one is given, along the primary key of record_facets.
SELECT f.key FROM record_facets f
CROSS JOIN records r ON r.namespace = f.namespace AND r.kind = f.kind AND r.key = f.key
WHERE f.namespace = ?1 AND f.kind = ?2 AND f.name = ?6 AND f.value = ?7 AND f.key > ?3
    AND (?5 IS NULL OR r.parent = ?5)
ORDER BY f.key LIMIT ?4
