-- Jobs submitted within the last ?1 milliseconds, by hour and status. Lock: none, on a snapshot.
-- Index: windlass_jobs_newest, or _submitter when one is given.
SELECT created_at / 3600000 * 3600000 AS at, status, count(*) AS jobs
FROM windlass_jobs
WHERE created_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?1
    AND (?2 IS NULL OR submitter = ?2)
GROUP BY 1, 2
ORDER BY 1, 2
