-- Stores the schedule of a job type. An unchanged schedule keeps its next firing time.
-- Lock: the row.
-- Index: the primary key.
INSERT INTO windlass_schedules AS s (job_type, spec, next_at)
VALUES ($1, $2, 'epoch'::timestamptz + $3 * interval '1 millisecond')
ON CONFLICT (job_type) DO UPDATE
SET spec = excluded.spec, next_at = excluded.next_at, error = NULL
WHERE s.spec <> excluded.spec
