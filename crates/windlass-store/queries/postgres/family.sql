-- A job and those that redrive its letters, with their states, oldest first. Lock: none.
-- Index: the primary key; windlass_jobs_redrives.
SELECT id, status
FROM windlass_jobs
WHERE id = $1 OR (root = $1 AND redrive)
ORDER BY created_at, id
