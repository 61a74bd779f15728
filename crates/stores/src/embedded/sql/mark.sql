-- Keeps a high-water mark; it never goes back.
INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)
