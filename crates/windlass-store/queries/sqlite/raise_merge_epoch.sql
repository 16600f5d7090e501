-- Raises the epoch of the segment that merges a job to that of its load's ledger row.
-- Lock: the writer's. Index: the primary key.
UPDATE windlass_segments SET epoch = ?3 WHERE job_id = ?1 AND state = ?2 AND epoch < ?3
