-- Hands a segment back.
-- Lock: the segment.
-- Index: the primary key.
UPDATE windlass_segments
SET status = 'PENDING',
    attempts = attempts + $4,
    error = coalesce($5, error),
    available_at = clock_timestamp() + $6 * interval '1 millisecond',
    lease_until = NULL
WHERE job_id = $1 AND number = $2 AND epoch = $3 AND nonce = $7 AND status = 'PROCESSING'
