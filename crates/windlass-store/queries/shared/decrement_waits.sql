-- Decreases the number of parents that a job waits for.
-- Lock: the job (already locked).
-- Index: the primary key.
UPDATE windlass_jobs SET waits = waits - 1 WHERE id = $1 AND waits > 0
