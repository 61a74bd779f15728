-- One job by primary key, with what was submitted and its payload. A LEFT JOIN, so that a missing half is noticed as damage.
SELECT j.lane, j.priority, j.seq, j.state, j.due, j.live, j.sum, i.spec, i.spec_sum, i.payload, i.payload_sum
FROM jobs j LEFT JOIN inputs i ON i.namespace = j.namespace AND i.id = j.id
WHERE j.namespace = ?1 AND j.id = ?2
