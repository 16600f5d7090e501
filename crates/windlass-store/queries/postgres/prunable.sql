-- Lists jobs of a type that ended for good more than $2 milliseconds ago and still have chunks.
-- Lock: none.
-- Index: windlass_jobs_ended.
SELECT id
FROM windlass_jobs
WHERE job_type = $1
    AND finished_at <= clock_timestamp() - $2 * interval '1 millisecond'
    AND status IN ('COMPLETED', 'CANCELLED')
    AND NOT closed
    AND connection = ANY ($4)
ORDER BY finished_at
LIMIT $3
