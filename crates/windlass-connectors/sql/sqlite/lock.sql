-- Checks the epoch and the nonce before rows are marked.
--
-- Lock: the write lock of the file, acquired when the transaction began. Index: the primary key.
SELECT 1 FROM windlass_ledger WHERE job_id = ?1 AND chunk = ?2 AND epoch = ?3 AND nonce = ?4
