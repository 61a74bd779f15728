-- Numbers that were given elsewhere are not given again: places in the queue, and event numbers.
SELECT setval('windlass.places', greatest($1::bigint, (SELECT last_value FROM windlass.places)))
FROM (SELECT 1) one WHERE $1 > 0
