-- Records that a job has exceeded its failure budget.
-- Lock: the job (already locked).
-- Index: the primary key.
UPDATE windlass_jobs SET exceeded_at = clock_timestamp() WHERE id = $1
