-- Pauses a schedule, or resumes it with this next firing time.
-- Lock: the row.
-- Index: the primary key.
UPDATE windlass_schedules
SET paused = $2, next_at = coalesce('epoch'::timestamptz + $3 * interval '1 millisecond', next_at)
WHERE job_type = $1
