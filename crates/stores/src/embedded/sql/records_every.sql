-- Records of every namespace and kind, along the primary key: for those who move everything to another store.
SELECT namespace, kind, key FROM records WHERE (namespace, kind, key) > (?1, ?2, ?3)
ORDER BY namespace, kind, key LIMIT ?4
