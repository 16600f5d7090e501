-- Checks the epoch and the nonce before rows are marked, and keeps other transactions from raising the epoch.
--
-- Lock: the one row, until the end of the transaction. Index: the primary key.
SELECT 1 FROM windlass_ledger WHERE job_id = ? AND chunk = ? AND epoch = ? AND nonce = ? FOR UPDATE
