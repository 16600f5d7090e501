-- Counts the rows that a commit's items emitted, so that the audit finds out when one is missing.
--
-- Lock: the row this transaction has locked by its first statement. Index: the primary key.
UPDATE windlass_ledger SET emitted = emitted + ? WHERE job_id = ? AND chunk = ?
