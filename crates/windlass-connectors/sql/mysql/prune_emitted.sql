-- Deletes the rows that a job emitted, up to a number of rows. Lock: the rows.
-- Index: the primary key's first column.
DELETE FROM windlass_emitted WHERE job_id = ? LIMIT ?
