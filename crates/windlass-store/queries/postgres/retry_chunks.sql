-- Queues the failed chunks of a job again, with their attempts reset.
-- Lock: the chunks, after the job.
-- Index: windlass_chunks_failed.
UPDATE windlass_chunks
SET status = 'PENDING',
    attempts = 0,
    error = NULL,
    finished_at = NULL,
    available_at = clock_timestamp()
WHERE job_id = $1 AND status = 'FAILED'
