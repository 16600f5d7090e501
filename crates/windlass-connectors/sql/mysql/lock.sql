-- Locks and reads the row of a lease: before its rows are marked, and after a commit whose answer was lost. No row
-- means that the lease is lost. It waits for a commit in progress, and creates no row.
--
-- Lock: the one row, until the end of the transaction. Index: the primary key.
SELECT job_id, chunk, epoch, commits, `cursor`, `read`, processed, skipped, dead, conflicts, stalls, nonce
FROM windlass_ledger
WHERE job_id = ? AND chunk = ? AND epoch = ? AND nonce = ?
FOR UPDATE
