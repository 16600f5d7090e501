-- Pauses a schedule, or resumes it with this next firing time.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_schedules
SET paused = ?2, next_at = coalesce(?3, next_at)
WHERE job_type = ?1
