-- Counts the rows that a commit's items emitted, so that the audit finds out when one is missing.
--
-- Lock: the file's one writer. Index: the primary key.
UPDATE windlass_ledger SET emitted = emitted + ?3 WHERE job_id = ?1 AND chunk = ?2
