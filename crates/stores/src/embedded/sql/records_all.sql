-- Records of a kind by key, along the primary key.
SELECT key FROM records WHERE namespace = ?1 AND kind = ?2 AND key > ?3 ORDER BY key LIMIT ?4
