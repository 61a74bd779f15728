-- A new job. Touches the primary key and only those partial indexes its state belongs to.
INSERT INTO jobs (namespace, id, lane, priority, seq, state, due, worker, wait_key, run, live, sum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
