-- Event numbers that were given elsewhere are not given again.
UPDATE windlass.meta SET value = greatest(value, $1) WHERE name = 'last_event'
