-- Forgets the held items of a job, at most so many rows. Lock: the rows.
-- Index: the primary key's first column.
DELETE FROM windlass_deferred WHERE job_id = ? LIMIT ?
