-- A new record. Somebody else's insert in between would fail on the primary key.
INSERT INTO records (namespace, kind, key, version, value, sum, parent, due, facets)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
