-- Sums the items of a job's ended chunks, in intervals of ?2 milliseconds.
-- Lock: none.
-- Index: the primary key.
SELECT finished_at / ?2 * ?2 AS at, sum(processed + skipped + dead) AS items
FROM windlass_chunks
WHERE job_id = ?1 AND finished_at IS NOT NULL
GROUP BY 1
ORDER BY 1
