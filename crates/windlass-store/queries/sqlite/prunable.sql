-- Lists jobs of a type that ended for good more than ?2 milliseconds ago and still have chunks.
-- Lock: none.
-- Index: windlass_jobs_ended.
SELECT id
FROM windlass_jobs
WHERE job_type = ?1
    AND finished_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?2
    AND status IN ('COMPLETED', 'CANCELLED')
    AND closed = 0
    AND connection IN (SELECT value FROM json_each(?4))
ORDER BY finished_at
LIMIT ?3
