-- Queues the failed chunks of a job again, with their attempts reset.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_chunks
SET status = 'PENDING',
    attempts = 0,
    error = NULL,
    finished_at = NULL,
    available_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE job_id = ?1 AND status = 'FAILED'
