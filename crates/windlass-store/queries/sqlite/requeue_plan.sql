-- Queues the planning of a job again. The new epoch refuses pages of the planner before.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_segments
SET status = 'PENDING',
    epoch = epoch + 1,
    state = ?2,
    attempts = 0,
    error = NULL,
    available_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
    lease_until = NULL
WHERE job_id = ?1 AND number = 0
