-- Moves the next firing time of a schedule on, unless another process has moved it already.
-- Lock: the row.
-- Index: the primary key.
UPDATE windlass_schedules
SET next_at = 'epoch'::timestamptz + $3 * interval '1 millisecond',
    last_at = coalesce('epoch'::timestamptz + $5 * interval '1 millisecond', last_at),
    last_job = coalesce($4, last_job),
    error = NULL
WHERE job_type = $1 AND next_at = 'epoch'::timestamptz + $2 * interval '1 millisecond'
