-- Jobs and what was submitted must come in pairs. Two scans; only the check runs it.
SELECT 'job ' || namespace || '/' || hex(id) FROM (
    SELECT namespace, id FROM jobs EXCEPT SELECT namespace, id FROM inputs
    UNION ALL
    SELECT * FROM (SELECT namespace, id FROM inputs EXCEPT SELECT namespace, id FROM jobs)
) LIMIT ?1
