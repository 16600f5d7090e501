-- Forgets the rows that a job emitted, at most so many rows. Lock: the rows.
-- Index: the primary key's first column.
DELETE FROM windlass_emitted WHERE job_id = ? LIMIT ?
