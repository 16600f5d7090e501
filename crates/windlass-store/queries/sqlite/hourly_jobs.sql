-- Counts the jobs submitted within the last ?1 milliseconds by hour and status.
-- Lock: none (reads a snapshot).
-- Index: windlass_jobs_status, one hour of a status at a time; _submitter if one is given.
WITH RECURSIVE since AS MATERIALIZED (
    SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?1 AS at
),
hours AS (
    SELECT at / 3600000 * 3600000 AS at FROM since
    UNION ALL
    SELECT at + 3600000 FROM hours WHERE at + 3600000 < CAST(unixepoch('subsec') * 1000 AS INTEGER)
)
SELECT at, status, jobs
FROM (
    SELECT
        h.at, s.value AS status,
        (
            SELECT count(*)
            FROM windlass_jobs j
            WHERE j.status = s.value
                AND j.created_at >= h.at
                AND j.created_at < h.at + 3600000
                AND j.created_at > (SELECT at FROM since)
                AND (?2 IS NULL OR j.submitter = ?2)
                AND (?4 IS NULL OR j.job_type IN (SELECT value FROM json_each(?4)))
        ) AS jobs
    FROM hours h CROSS JOIN json_each(?3) s
)
WHERE jobs > 0
ORDER BY at, status
