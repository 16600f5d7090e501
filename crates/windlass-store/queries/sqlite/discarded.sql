-- The output of a job is gone. Lock: the writer's. Index: the primary key.
UPDATE windlass_jobs SET discard = 0 WHERE id = ?1
