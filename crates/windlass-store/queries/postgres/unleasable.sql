-- Lists job types with waiting work that no process with a heartbeat in the last $1 milliseconds
-- can lease, and what a process would need. Work that is stopped or waits for another job is left
-- out.
-- Lock: none.
-- Index: windlass_jobs_leasable; the table of workers is small.
SELECT j.job_type, j.connection, j.handler, count(*) AS jobs
FROM windlass_jobs j
WHERE j.status IN ('QUEUED', 'PROCESSING')
    AND j.waits = 0
    AND j.open_segments + j.open_chunks > 0
    AND NOT EXISTS (
        SELECT 1
        FROM windlass_controls h
        WHERE h.subject IN ('*', j.job_type) AND h.stopped
    )
    AND NOT EXISTS (
        SELECT 1
        FROM windlass_workers w
        WHERE w.seen_at > clock_timestamp() - $1 * interval '1 millisecond'
            AND (w.connections IS NULL OR j.connection = ANY (w.connections))
            AND (j.handler IS NULL OR w.handlers IS NULL OR j.handler = ANY (w.handlers))
            AND (w.only_job IS NULL OR w.only_job = j.id)
    )
GROUP BY j.job_type, j.connection, j.handler
ORDER BY j.job_type, j.connection, j.handler
