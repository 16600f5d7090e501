-- Closes a job that has ended for good, after its chunks were deleted.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_jobs SET closed = 1 WHERE id = ?1 AND finished_at IS NOT NULL
