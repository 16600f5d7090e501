-- Records that the output of a job was removed.
-- Lock: the job.
-- Index: the primary key.
UPDATE windlass_jobs SET discard = false WHERE id = $1
