-- All of a record.
UPDATE records SET version = ?4, value = ?5, sum = ?6, parent = ?8, due = ?9, facets = ?10
WHERE namespace = ?1 AND kind = ?2 AND key = ?3 AND version = ?7
