-- Lists the segments of a job in order of their numbers.
-- Lock: none.
-- Index: the primary key.
SELECT number, status, state, key_range, error
FROM windlass_segments
WHERE job_id = $1
ORDER BY number
