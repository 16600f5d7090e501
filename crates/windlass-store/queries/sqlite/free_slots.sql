-- Computes how many more chunks of a job may be in progress, by the limits of its job type and its
-- own; NULL without a limit.
-- Lock: the write transaction.
-- Index: windlass_jobs_leasable; windlass_chunks_processing.
SELECT min(free) AS free
FROM (
    SELECT
        coalesce(l.concurrency, l.default_concurrency) - (
            SELECT count(*)
            FROM windlass_jobs a JOIN windlass_chunks c ON c.job_id = a.id AND c.status = 'PROCESSING'
            WHERE l.subject IN (a.job_type, a.id) AND a.status IN ('QUEUED', 'PROCESSING') AND a.waits = 0
        ) AS free
    FROM windlass_jobs j JOIN windlass_controls l ON l.subject IN (j.job_type, j.id)
    WHERE j.id = ?1 AND coalesce(l.concurrency, l.default_concurrency) IS NOT NULL
)
