-- Lists the merges of cancelled jobs, whose loads must be fenced. All other segments of these jobs
-- have ended.
-- Lock: the write transaction.
-- Index: windlass_jobs_cancelled; windlass_segments_pending.
SELECT s.job_id, s.number
FROM windlass_jobs j INDEXED BY windlass_jobs_cancelled
    CROSS JOIN windlass_segments s ON s.job_id = j.id
WHERE j.status = 'CANCELLED'
    AND j.finished_at IS NULL
    AND j.connection IN (SELECT value FROM json_each(?1))
    AND (?2 IS NULL OR j.id = ?2)
    AND s.status = 'PENDING'
    AND s.available_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
ORDER BY s.job_id, s.number
LIMIT ?3
