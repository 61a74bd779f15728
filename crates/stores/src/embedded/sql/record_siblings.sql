-- Records of one kind under one parent (records_parent).
SELECT key FROM records INDEXED BY records_parent
WHERE namespace = ?1 AND kind = ?2 AND parent = ?3 ORDER BY key
