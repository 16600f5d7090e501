-- How many jobs that have not ended there are of each type and status, with their chunks. Those that
-- wait are counted by the jobs' own counters: only chunks at work are looked at. Lock: none, on a snapshot.
-- Index: windlass_jobs_claim, windlass_jobs_waiting, windlass_jobs_paused; windlass_chunks_processing.
SELECT
    job_type, status, count(*) AS jobs, sum(open_chunks - processing) AS pending,
    sum(processing) AS processing
FROM (
    SELECT
        j.job_type, j.status, j.open_chunks,
        (
            SELECT count(*)
            FROM windlass_chunks c INDEXED BY windlass_chunks_processing
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
