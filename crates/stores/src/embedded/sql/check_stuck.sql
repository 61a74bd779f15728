-- Jobs that have not ended and that nothing would ever move: blocked without a parent or key to wait for. A scan; only
-- the check runs it.
SELECT 'job ' || namespace || '/' || hex(id) FROM jobs
WHERE state = 0 AND wait_key IS NULL AND coalesce(json_extract(live, '$.waiting'), 0) = 0
LIMIT ?1
