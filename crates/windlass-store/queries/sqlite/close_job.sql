-- Closes a job that has ended, so that nobody retries it. Lock: the writer's. Index: the primary key.
UPDATE windlass_jobs
SET closed = 1
WHERE id = ?1
    AND status IN ('COMPLETED', 'FAILED', 'CANCELLED')
    AND finished_at IS NOT NULL
