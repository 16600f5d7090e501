-- What has not ended: jobs, chunks of jobs that are being cancelled, and dependents that were not submitted.
SELECT 'job ' || id || ' is ' || status || coalesce(' (' || error || ')', '') FROM windlass_jobs
WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
UNION ALL
-- A job that fails because it cannot be planned keeps its pending chunks for a retry.
SELECT 'chunk ' || c.number || ' of ' || c.job_id || ' is ' || c.status
FROM windlass_chunks c JOIN windlass_jobs j ON j.id = c.job_id
WHERE c.status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED') AND NOT (j.status = 'FAILED' AND c.status = 'PENDING')
UNION ALL
-- One whose parent was pruned before is refused for ever: a known limit.
SELECT 'a dependent was not submitted' FROM windlass_triggers
WHERE coalesce(error, '') NOT LIKE '%there is no job%'
