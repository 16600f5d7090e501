-- Ends the chunks of a cancelled job that were never leased. They need no fence.
-- Lock: the chunks, after the job.
-- Index: windlass_chunks_fresh.
UPDATE windlass_chunks
SET status = 'CANCELLED', finished_at = clock_timestamp()
WHERE job_id = $1 AND status = 'PENDING' AND epoch = 0
