-- Sums the items of a job's ended chunks, in intervals of $2 milliseconds.
-- Lock: none.
-- Index: the primary key.
SELECT
    date_bin($2::bigint * interval '1 millisecond', finished_at, 'epoch'::timestamptz) AS at,
    sum(processed + skipped + dead)::bigint AS items
FROM windlass_chunks
WHERE job_id = $1 AND finished_at IS NOT NULL
GROUP BY 1
ORDER BY 1
