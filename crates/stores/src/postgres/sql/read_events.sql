-- events_numbered. Begins with the row that holds the first number asked for.
SELECT first_no, body FROM windlass.events
WHERE first_no > 0 AND first_no <= $2
  AND first_no >= coalesce((SELECT max(first_no) FROM windlass.events WHERE first_no > 0 AND first_no <= $1), 0)
ORDER BY first_no
LIMIT $3
