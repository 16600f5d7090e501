-- Deletes the ledger rows of a job, at most $2 rows. Lock: the rows.
-- Index: the primary key's first column.
DELETE FROM windlass_ledger
WHERE ctid = ANY (ARRAY (SELECT ctid FROM windlass_ledger WHERE job_id = $1 LIMIT $2))
