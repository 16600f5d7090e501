-- Reads the parents of a new job. A job that is being cancelled is reported as PROCESSING.
-- Lock: the write transaction.
-- Index: the primary key.
SELECT id, CASE WHEN status = 'CANCELLED' AND finished_at IS NULL THEN 'PROCESSING' ELSE status END AS status
FROM windlass_jobs
WHERE id IN (SELECT value FROM json_each(?1))
ORDER BY created_at, id
