-- Queues the failed segments of a job again, with their attempts reset.
-- Lock: the segments, after the job.
-- Index: the primary key.
UPDATE windlass_segments
SET status = 'PENDING', attempts = 0, error = NULL, available_at = clock_timestamp()
WHERE job_id = $1 AND status = 'FAILED'
