-- Counts the lost leases by job.
-- Lock: none (reads a snapshot).
-- Index: windlass_chunks_lost.
SELECT l.job_id, j.job_type, l.losses
FROM (
    SELECT job_id, sum(losses) AS losses FROM windlass_chunks WHERE losses > 0 GROUP BY job_id
) l
JOIN windlass_jobs j ON j.id = l.job_id
