-- Primary key. From now on whoever queues a job below takes the proposal back.
INSERT INTO windlass.lane_marks AS m (namespace, lane, priority, seq, next_priority, next_seq, next_by)
VALUES ($1, $2, '-2147483648'::integer, '-9223372036854775808'::bigint, $3, $4, $5)
ON CONFLICT (namespace, lane) DO UPDATE
SET next_priority = excluded.next_priority, next_seq = excluded.next_seq, next_by = excluded.next_by
WHERE (m.priority, m.seq) < (excluded.next_priority, excluded.next_seq)
