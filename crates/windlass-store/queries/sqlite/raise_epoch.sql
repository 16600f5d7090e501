-- Raises the epoch of a chunk to that of its ledger row, after a restore of the store.
-- Lock: the writer's. Index: the primary key.
UPDATE windlass_chunks SET epoch = ?3 WHERE job_id = ?1 AND number = ?2 AND epoch < ?3
