-- What was submitted, written once.
INSERT INTO inputs (namespace, id, spec_sum, spec, payload_sum, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
