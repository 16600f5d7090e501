-- A job's chunks in stretches of ?2, by status. Lock: none. Index: the primary key.
SELECT number / ?2 AS cell, status, count(*) AS chunks, sum(dead) AS dead
FROM windlass_chunks
WHERE job_id = ?1
GROUP BY 1, 2
ORDER BY 1, 2
