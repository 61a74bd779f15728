-- A payload by primary key.
SELECT payload, payload_sum FROM inputs WHERE namespace = ?1 AND id = ?2
