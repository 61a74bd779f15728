-- The batch that holds event ?1, and all after it (primary key).
SELECT first_no, count, at, next_seq, sum, body FROM events
WHERE first_no >= coalesce((SELECT max(first_no) FROM events WHERE first_no <= ?1), 0)
ORDER BY first_no
