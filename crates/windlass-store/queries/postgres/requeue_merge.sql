-- Takes the merge of a cancelled job from the process that leases it, so that it can be leased and
-- fenced. All other segments have ended.
-- Lock: the segments, after the job.
-- Index: the primary key.
UPDATE windlass_segments
SET status = 'PENDING', lease_until = NULL, available_at = clock_timestamp(), error = NULL
WHERE job_id = $1 AND status IN ('PENDING', 'PROCESSING')
