-- Lists the leased chunks of open jobs by worker, for workers other than $1 without a heartbeat for $3
-- milliseconds. With $2, those of this job only.
-- Lock: none.
-- Index: windlass_jobs_leasable; windlass_chunks_processing.
SELECT c.worker, count(*) AS chunks, max(c.lease_until) AS until
FROM windlass_jobs j JOIN windlass_chunks c ON c.job_id = j.id AND c.status = 'PROCESSING'
WHERE j.status IN ('QUEUED', 'PROCESSING')
    AND j.waits = 0
    AND ($2::uuid IS NULL OR j.id = $2)
    AND c.worker <> $1
    AND NOT EXISTS (
        SELECT
        FROM windlass_workers w
        WHERE w.name = c.worker AND w.seen_at >= clock_timestamp() - $3 * interval '1 millisecond'
    )
GROUP BY c.worker
ORDER BY c.worker
