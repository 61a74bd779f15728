-- Each row of events must begin where the one before it ends. A scan; only the check runs it.
SELECT 'event ' || first_no FROM (
    SELECT first_no, lag(first_no + count) OVER (ORDER BY first_no) AS expected FROM events
) WHERE expected IS NOT NULL AND expected <> first_no
LIMIT ?1
