-- Counts the jobs submitted within the last $1 milliseconds by hour and status.
-- Lock: none.
-- Index: windlass_jobs_status, one hour of a status at a time; _submitter if one is given.
SELECT h.at, s.status, j.jobs
FROM generate_series(
        date_trunc('hour', now() - $1::bigint * interval '1 millisecond', 'UTC'),
        now(), interval '1 hour'
    ) AS h (at)
    CROSS JOIN unnest($3::text[]) AS s (status)
    CROSS JOIN LATERAL (
        SELECT count(*) AS jobs
        FROM windlass_jobs
        WHERE status = s.status
            AND created_at >= h.at
            AND created_at < h.at + interval '1 hour'
            AND created_at > now() - $1::bigint * interval '1 millisecond'
            AND ($2::text IS NULL OR submitter = $2)
            AND ($4::text[] IS NULL OR job_type = ANY ($4))
    ) AS j
WHERE j.jobs > 0
ORDER BY h.at, s.status
