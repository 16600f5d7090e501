-- A job waits for one parent less. Lock: the job, held already. Index: the primary key.
UPDATE windlass_jobs SET waits = waits - 1 WHERE id = ?1 AND waits > 0
