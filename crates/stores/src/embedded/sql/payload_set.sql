-- The payload of a job that was submitted without one, by primary key: the planner has worked it out.
UPDATE inputs SET payload_sum = ?3, payload = ?4 WHERE namespace = ?1 AND id = ?2
