-- Deletes the ledger rows of a job, up to a number of rows. Lock: the rows.
-- Index: the primary key's first column.
DELETE FROM windlass_ledger WHERE job_id = ? LIMIT ?
