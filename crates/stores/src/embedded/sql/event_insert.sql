-- One row for all events of a batch, appended at the end of the table.
INSERT INTO events (first_no, count, at, next_seq, sum, body, counts, counts_sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
