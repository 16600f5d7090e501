-- Forgets the ledger of a job. Lock: the file's one writer. Index: the primary key's first column.
DELETE FROM windlass_ledger WHERE job_id = ?1
