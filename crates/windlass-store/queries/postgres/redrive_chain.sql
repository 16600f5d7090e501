-- A job and those that redrive its letters, with their states, oldest first. One that is
-- being cancelled is at work. Lock: none.
-- Index: the primary key; windlass_jobs_redrives.
SELECT id, CASE WHEN status = 'CANCELLED' AND finished_at IS NULL THEN 'PROCESSING' ELSE status END AS status
FROM windlass_jobs
WHERE id = $1 OR (root = $1 AND redrive)
ORDER BY created_at, id
