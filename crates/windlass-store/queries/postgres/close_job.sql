-- Closes a job that has ended for good: its chunks are gone. Lock: the job, held already. Index: the primary key.
UPDATE windlass_jobs SET closed = true WHERE id = $1 AND finished_at IS NOT NULL
