-- A heartbeat and the like: parent, due time and facets stay, so no index is named.
UPDATE records SET version = ?4, value = ?5, sum = ?6
WHERE namespace = ?1 AND kind = ?2 AND key = ?3 AND version = ?7
