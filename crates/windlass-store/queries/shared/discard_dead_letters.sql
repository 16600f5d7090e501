-- Deletes all dead letters of a job that is read again.
-- Lock: the letters, after the job.
-- Index: windlass_dead_letters_item.
DELETE FROM windlass_dead_letters WHERE job_id = $1
