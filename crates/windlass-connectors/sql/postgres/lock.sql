-- Checks the epoch and the nonce before rows are marked, and keeps other transactions from raising the epoch.
--
-- Lock: the one row, until the end of the transaction. Index: the primary key.
SELECT 1 FROM windlass_ledger WHERE job_id = $1 AND chunk = $2 AND epoch = $3 AND nonce = $4 FOR UPDATE
