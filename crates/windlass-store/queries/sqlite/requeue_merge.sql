-- Takes the merge of a cancelled job from the process that leases it, so that it can be leased and
-- fenced. All other segments have ended.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_segments
SET status = 'PENDING', lease_until = NULL, available_at = CAST(unixepoch('subsec') * 1000 AS INTEGER), error = NULL
WHERE job_id = ?1 AND status IN ('PENDING', 'PROCESSING')
