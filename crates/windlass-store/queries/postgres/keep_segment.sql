-- Commits a page: the segment's new state, and its end or a longer lease. A page that is loaded
-- shows that loading works, so that failures are counted anew.
-- Lock: the segment, held already. Index: the primary key.
UPDATE windlass_segments
SET state = $4,
    status = $5,
    attempts = 0,
    error = NULL,
    lease_until = clock_timestamp() + $6 * interval '1 millisecond'
WHERE job_id = $1 AND number = $2 AND epoch = $3 AND status = 'PROCESSING'
