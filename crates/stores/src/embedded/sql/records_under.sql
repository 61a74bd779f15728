-- Records of a kind under a parent by key (records_parent).
SELECT key FROM records INDEXED BY records_parent
WHERE namespace = ?1 AND kind = ?2 AND parent = ?5 AND key > ?3 ORDER BY key LIMIT ?4
