-- Events that have their numbers already, because they come from another store.
INSERT INTO windlass.events (first_no, at, count, batch, body, counts, version)
SELECT e.*, '', 7 FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::uuid[], $5::text[]) e
