-- Moves a schedule on from the time that was seen to, unless somebody has. Lock: its row.
-- Index: the primary key.
UPDATE windlass_schedules
SET next_at = 'epoch'::timestamptz + $3 * interval '1 millisecond',
    last_at = coalesce('epoch'::timestamptz + $5 * interval '1 millisecond', last_at),
    last_job = coalesce($4, last_job),
    error = NULL
WHERE job_type = $1 AND next_at = 'epoch'::timestamptz + $2 * interval '1 millisecond'
