-- Adds to the number of items of a job, which was estimated.
-- Lock: the job (already locked).
-- Index: the primary key.
UPDATE windlass_jobs SET items_total = items_total + $2 WHERE id = $1
