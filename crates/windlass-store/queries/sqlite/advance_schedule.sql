-- Moves the next firing time of a schedule on, unless another process has moved it already.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_schedules
SET next_at = ?3,
    last_at = coalesce(?5, last_at),
    last_job = coalesce(?4, last_job),
    error = NULL
WHERE job_type = ?1 AND next_at = ?2
