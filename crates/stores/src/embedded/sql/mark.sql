-- Sets a mark.
INSERT INTO meta (name, value, sum) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, sum = excluded.sum
