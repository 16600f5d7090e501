-- Lists the first $2 jobs that failed or exceeded their budget in the last $1 milliseconds and have
-- no alert for it yet. A job that failed because of its budget is listed once.
-- Lock: none.
-- Index: windlass_jobs_failed, windlass_jobs_exceeded; windlass_alerts_occurrence.
SELECT kind, id, job_type, submitter, error, at,
    id::text || '@' || (extract(epoch FROM at) * 1000)::bigint AS subject
FROM (
    SELECT 'job-failed' AS kind, id, job_type, submitter, error, finished_at AS at
    FROM windlass_jobs
    WHERE status = 'FAILED' AND (exceeded_at IS NULL OR exceeded_at < finished_at)
    UNION ALL
    SELECT 'budget-exceeded', id, job_type, submitter, error, exceeded_at
    FROM windlass_jobs
    WHERE exceeded_at IS NOT NULL
) o
WHERE at > clock_timestamp() - $1 * interval '1 millisecond'
    AND NOT EXISTS (
        SELECT 1
        FROM windlass_alerts a
        WHERE a.kind = o.kind
            AND a.subject = o.id::text || '@' || (extract(epoch FROM o.at) * 1000)::bigint
    )
ORDER BY at
LIMIT $2
