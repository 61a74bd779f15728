-- Jobs of a namespace in some states (?3 has a bit for each), newest first, along the primary key.
SELECT id FROM jobs WHERE namespace = ?1 AND id <= ?2 AND (?3 >> state) & 1 ORDER BY id DESC
