-- Ends the merge of a cancelled job, whose load is fenced.
-- Lock: the segment, after the job.
-- Index: the primary key.
UPDATE windlass_segments
SET status = 'CANCELLED', lease_until = NULL
WHERE job_id = $1 AND number = $2 AND epoch = $3 AND nonce = $4 AND status = 'PROCESSING'
