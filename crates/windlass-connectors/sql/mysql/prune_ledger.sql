-- Forgets the ledger of a job, at most so many rows. Lock: the rows.
-- Index: the primary key's first column.
DELETE FROM windlass_ledger WHERE job_id = ? LIMIT ?
