-- Closes a job that has ended, so that nobody retries it. Lock: the job. Index: the primary key.
UPDATE windlass_jobs
SET closed = true
WHERE id = $1
    AND status IN ('COMPLETED', 'FAILED', 'CANCELLED')
    AND finished_at IS NOT NULL
