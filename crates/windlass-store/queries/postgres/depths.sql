-- Counts the jobs that have not ended by type and status, with their chunks. Pending chunks are
-- computed from the counters of the jobs, so only chunks in progress are read.
-- Lock: none.
-- Index: windlass_jobs_leasable, windlass_jobs_waiting, windlass_jobs_paused;
-- windlass_chunks_processing.
SELECT
    job_type, status, count(*) AS jobs, sum(open_chunks - processing)::bigint AS pending,
    sum(processing)::bigint AS processing
FROM (
    SELECT
        j.job_type, j.status, j.open_chunks,
        (
            SELECT count(*)
            FROM windlass_chunks c
            WHERE c.job_id = j.id AND c.status = 'PROCESSING'
        ) AS processing
    FROM (
        SELECT id, job_type, status, open_chunks
        FROM windlass_jobs
        WHERE status IN ('QUEUED', 'PROCESSING') AND waits = 0
        UNION ALL
        SELECT id, job_type, status, open_chunks
        FROM windlass_jobs
        WHERE waits > 0 AND status = 'QUEUED'
        UNION ALL
        SELECT id, job_type, status, open_chunks FROM windlass_jobs WHERE status = 'PAUSED'
    ) j
) o
GROUP BY job_type, status
ORDER BY job_type, status
