-- Lists a job and the jobs that redrive its letters with their statuses, oldest first. A job that
-- is being cancelled is reported as PROCESSING.
-- Lock: none.
-- Index: the primary key; windlass_jobs_redrives.
SELECT id, CASE WHEN status = 'CANCELLED' AND finished_at IS NULL THEN 'PROCESSING' ELSE status END AS status
FROM windlass_jobs
WHERE id = $1 OR (root = $1 AND redrive)
ORDER BY created_at, id
