-- The failed chunks of a job: how many, the first ten, their errors.
-- Lock: none beyond the job's. Index: windlass_chunks_failed.
SELECT number, error, count(*) OVER () AS total
FROM windlass_chunks
WHERE job_id = $1 AND status = 'FAILED'
ORDER BY number
LIMIT 10
