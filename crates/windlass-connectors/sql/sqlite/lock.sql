-- Reads the row of a lease: before its rows are marked, and after a commit whose answer was lost. No row means that
-- the lease is lost. It creates no row.
--
-- Lock: the write lock of the file, acquired when the transaction began. Index: the primary key.
SELECT epoch, commits, cursor, read, processed, skipped, dead, conflicts, stalls, nonce
FROM windlass_ledger
WHERE job_id = ?1 AND chunk = ?2 AND epoch = ?3 AND nonce = ?4
