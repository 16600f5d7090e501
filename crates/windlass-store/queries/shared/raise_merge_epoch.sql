-- Raises the epoch of a job's merge segment to that of its load's ledger row.
-- Lock: the segment.
-- Index: the primary key.
UPDATE windlass_segments SET epoch = $3 WHERE job_id = $1 AND state = $2 AND epoch < $3
