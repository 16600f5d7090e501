-- Counts the completed chunks of a job by duration since their first lease, in milliseconds
-- truncated to two significant digits, which gives few rows for any number of chunks.
-- Lock: none.
-- Index: the primary key.
SELECT
    CASE
        WHEN took < 100 THEN took
        WHEN took < 1000 THEN took / 10 * 10
        WHEN took < 10000 THEN took / 100 * 100
        WHEN took < 100000 THEN took / 1000 * 1000
        WHEN took < 1000000 THEN took / 10000 * 10000
        ELSE took / 100000 * 100000
    END AS millis,
    count(*) AS chunks
FROM (
    SELECT greatest(floor(extract(epoch FROM finished_at - started_at) * 1000), 0)::bigint AS took
    FROM windlass_chunks
    WHERE job_id = $1 AND status = 'COMPLETED' AND started_at IS NOT NULL
) AS chunk
GROUP BY 1
ORDER BY 1
