-- Deletes the deferred items of a job, up to a number of rows. Lock: the rows.
-- Index: the primary key's first column.
DELETE FROM windlass_deferred WHERE job_id = ? LIMIT ?
