-- Counts the chunks of a job by status, in buckets of ?2 consecutive chunks.
-- Lock: none.
-- Index: the primary key.
SELECT number / ?2 AS bucket, status, count(*) AS chunks, sum(dead) AS dead
FROM windlass_chunks
WHERE job_id = ?1
GROUP BY 1, 2
ORDER BY 1, 2
