-- Records of every namespace and kind, along the primary key: for those who move everything to another store.
SELECT r.namespace, r.kind, r.key, r.version, r.parent, r.value, r.facets, r.due
FROM windlass.records r
WHERE (r.namespace, r.kind, r.key) > ($1, $2, $3)
ORDER BY r.namespace, r.kind, r.key
LIMIT $4
