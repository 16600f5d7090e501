-- Ends a segment FAILED.
-- Lock: the segment, after its job.
-- Index: the primary key.
UPDATE windlass_segments
SET status = 'FAILED', attempts = attempts + 1, error = $4, lease_until = NULL
WHERE job_id = $1 AND number = $2 AND epoch = $3 AND nonce = $5 AND status = 'PROCESSING'
