-- The output of a job is gone. Lock: the job. Index: the primary key.
UPDATE windlass_jobs SET discard = false WHERE id = $1
