-- Closes a job that has ended for good, after its chunks were deleted.
-- Lock: the job (already locked).
-- Index: the primary key.
UPDATE windlass_jobs SET closed = true WHERE id = $1 AND finished_at IS NOT NULL
