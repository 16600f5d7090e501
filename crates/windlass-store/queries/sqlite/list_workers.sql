-- Lists the worker processes, with the chunks that they have leased.
-- Lock: none (reads a snapshot).
-- Index: windlass_jobs_leasable; windlass_chunks_processing.
SELECT
    w.name, w.slots, w.started_at, w.seen_at, CAST(unixepoch('subsec') * 1000 AS INTEGER) - w.seen_at AS silent,
    coalesce(a.chunks, 0) AS chunks, a.job_types
FROM windlass_workers w
LEFT JOIN (
    SELECT c.worker, count(*) AS chunks, group_concat(DISTINCT j.job_type) AS job_types
    FROM windlass_jobs j JOIN windlass_chunks c ON c.job_id = j.id AND c.status = 'PROCESSING'
    WHERE j.status IN ('QUEUED', 'PROCESSING') AND j.waits = 0
    GROUP BY c.worker
) a ON a.worker = w.name
ORDER BY w.started_at, w.name
