-- Commits a page: the segment's new state, and its end or a longer lease. A page that is loaded
-- shows that loading works, so that failures are counted anew; one that changes nothing, by which a
-- merge asks whether it is still its own, does not.
-- Lock: the segment, held already. Index: the primary key.
UPDATE windlass_segments
SET state = $4,
    status = $5,
    attempts = CASE WHEN state = $4 AND status = $5 THEN attempts ELSE 0 END,
    error = CASE WHEN state = $4 AND status = $5 THEN error END,
    lease_until = clock_timestamp() + $6 * interval '1 millisecond'
WHERE job_id = $1 AND number = $2 AND epoch = $3 AND nonce = $7 AND status = 'PROCESSING'
