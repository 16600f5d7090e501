-- Counts the failed segments of a job and lists the first ten with their errors.
-- Lock: none (the job is locked).
-- Index: the primary key.
SELECT number, error, count(*) OVER () AS total
FROM windlass_segments
WHERE job_id = $1 AND status = 'FAILED'
ORDER BY number
LIMIT 10
