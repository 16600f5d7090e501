-- Stores the schedule of a job type. An unchanged schedule keeps its next firing time.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT INTO windlass_schedules AS s (job_type, spec, next_at)
VALUES (?1, ?2, ?3)
ON CONFLICT (job_type) DO UPDATE
SET spec = excluded.spec, next_at = excluded.next_at, error = NULL
WHERE s.spec <> excluded.spec
