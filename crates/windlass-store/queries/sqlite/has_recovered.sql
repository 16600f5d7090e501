-- Whether a job type whose suspension is over works again: since then one of its jobs or chunks
-- completed, or none of its jobs can run.
-- Lock: none (reads a snapshot).
-- Index: windlass_jobs_type; the chunks of the jobs that run.
SELECT c.suspended_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
    AND (
        NOT EXISTS (
            SELECT 1
            FROM windlass_jobs j
            WHERE j.job_type = c.subject AND j.status IN ('QUEUED', 'PROCESSING')
        )
        OR EXISTS (
            SELECT 1
            FROM windlass_jobs j
            WHERE j.job_type = c.subject AND j.status = 'COMPLETED' AND j.finished_at > c.suspended_until
        )
        OR EXISTS (
            SELECT 1
            FROM windlass_jobs j
            JOIN windlass_chunks k ON k.job_id = j.id
            WHERE j.job_type = c.subject
                AND j.status = 'PROCESSING'
                AND k.status = 'COMPLETED'
                AND k.finished_at > c.suspended_until
        )
    ) AS recovered
FROM windlass_controls c
WHERE c.subject = ?1 AND c.suspended_until IS NOT NULL
