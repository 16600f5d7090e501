-- The failed segments of a job: how many, the first ten, their errors.
-- Lock: the writer's. Index: the primary key.
SELECT number, error, count(*) OVER () AS total
FROM windlass_segments
WHERE job_id = ?1 AND status = 'FAILED'
ORDER BY number
LIMIT 10
