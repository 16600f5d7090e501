-- Raises the epoch of a chunk to that of its ledger row, after the store was restored from a
-- backup.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_chunks SET epoch = ?3 WHERE job_id = ?1 AND number = ?2 AND epoch < ?3
