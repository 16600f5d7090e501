-- Commits a page: the new state of the segment, and its end or a renewed lease. A page resets the
-- failed attempts, since it shows that planning works; not so a page that changes nothing, with
-- which a merge checks its lease.
-- Lock: the segment (already locked).
-- Index: the primary key.
UPDATE windlass_segments
SET state = $4,
    status = $5,
    attempts = CASE WHEN state = $4 AND status = $5 THEN attempts ELSE 0 END,
    error = CASE WHEN state = $4 AND status = $5 THEN error END,
    lease_until = clock_timestamp() + $6 * interval '1 millisecond'
WHERE job_id = $1 AND number = $2 AND epoch = $3 AND nonce = $7 AND status = 'PROCESSING'
