-- Makes sure of the epoch and the nonce before rows are marked, and keeps others from raising it meanwhile.
--
-- Lock: the one row, until the end of the transaction. Index: the primary key.
SELECT 1 FROM windlass_ledger WHERE job_id = ? AND chunk = ? AND epoch = ? AND nonce = ? FOR UPDATE
