-- One record by primary key.
SELECT version, parent, due, facets, value, sum FROM records WHERE namespace = ?1 AND kind = ?2 AND key = ?3
