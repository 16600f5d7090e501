-- Deletes the ledger rows of a job. Lock: the write lock of the file. Index: the primary key's first column.
DELETE FROM windlass_ledger WHERE job_id = ?1
