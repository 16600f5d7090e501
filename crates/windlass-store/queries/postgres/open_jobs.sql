-- Lists the oldest $2 jobs of a submitter that have not ended.
-- Lock: none.
-- Index: windlass_jobs_leasable, windlass_jobs_waiting, windlass_jobs_paused.
SELECT id
FROM (
    SELECT id, submitter, created_at
    FROM windlass_jobs
    WHERE status IN ('QUEUED', 'PROCESSING') AND waits = 0
    UNION ALL
    SELECT id, submitter, created_at FROM windlass_jobs WHERE waits > 0 AND status = 'QUEUED'
    UNION ALL
    SELECT id, submitter, created_at FROM windlass_jobs WHERE status = 'PAUSED'
) o
WHERE submitter = $1
ORDER BY created_at, id
LIMIT $2
