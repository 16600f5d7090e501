-- Adds the number of rows that a commit's items emitted, so that the audit detects missing rows.
--
-- Lock: the row, locked by the first statement of the transaction. Index: the primary key.
UPDATE windlass_ledger SET emitted = emitted + $3 WHERE job_id = $1 AND chunk = $2
