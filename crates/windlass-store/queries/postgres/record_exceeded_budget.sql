-- Records that a job has exceeded its failure budget. Runs after the job was paused or failed, so that a
-- failure by the budget has a time of at least `finished_at`.
-- Lock: the job (already locked).
-- Index: the primary key.
UPDATE windlass_jobs SET exceeded_at = clock_timestamp() WHERE id = $1
