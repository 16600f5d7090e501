-- Lists the first ?2 jobs that failed or exceeded their budget in the last ?1 milliseconds and have
-- no alert for it yet. A job that failed because of its budget is listed once.
-- Lock: none (reads a snapshot).
-- Index: windlass_jobs_failed, windlass_jobs_exceeded; windlass_alerts_occurrence.
SELECT kind, id, job_type, submitter, error, at, id || '@' || at AS subject
FROM (
    SELECT 'job-failed' AS kind, id, job_type, submitter, error, finished_at AS at
    FROM windlass_jobs
    WHERE status = 'FAILED' AND (exceeded_at IS NULL OR exceeded_at < finished_at)
    UNION ALL
    SELECT 'budget-exceeded', id, job_type, submitter, error, exceeded_at
    FROM windlass_jobs
    WHERE exceeded_at IS NOT NULL
) o
WHERE at > CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?1
    AND NOT EXISTS (
        SELECT 1
        FROM windlass_alerts a
        WHERE a.kind = o.kind
            AND a.subject = o.id || '@' || o.at
    )
ORDER BY at
LIMIT ?2
