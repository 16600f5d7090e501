-- Closes a job that has ended for good: its chunks are gone. Lock: the writer's. Index: the primary key.
UPDATE windlass_jobs SET closed = 1 WHERE id = ?1 AND finished_at IS NOT NULL
