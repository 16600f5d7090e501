-- Jobs submitted within the last $1 milliseconds, by hour and status. Lock: none.
-- Index: windlass_jobs_newest, or _submitter when one is given.
SELECT date_trunc('hour', created_at, 'UTC') AS at, status, count(*) AS jobs
FROM windlass_jobs
WHERE created_at > clock_timestamp() - $1::bigint * interval '1 millisecond'
    AND ($2::text IS NULL OR submitter = $2)
GROUP BY 1, 2
ORDER BY 1, 2
