-- Deletes the parts of a job.
-- Lock: the parts.
-- Index: the primary key.
DELETE FROM windlass_parts WHERE job_id = $1
