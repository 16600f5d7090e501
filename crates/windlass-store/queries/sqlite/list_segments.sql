-- A job's segments in order of number. Lock: none. Index: the primary key.
SELECT number, status, state, key_range, error
FROM windlass_segments
WHERE job_id = ?1
ORDER BY number
