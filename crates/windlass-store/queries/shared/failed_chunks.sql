-- Counts the failed chunks of a job and lists the first ten with their errors.
-- Lock: none (the job is locked).
-- Index: windlass_chunks_failed.
SELECT number, error, count(*) OVER () AS total
FROM windlass_chunks
WHERE job_id = $1 AND status = 'FAILED'
ORDER BY number
LIMIT 10
