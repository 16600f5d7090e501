-- Hands a segment back.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_segments
SET status = 'PENDING',
    attempts = attempts + ?4,
    error = coalesce(?5, error),
    available_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?6,
    lease_until = NULL
WHERE job_id = ?1 AND number = ?2 AND epoch = ?3 AND nonce = ?7 AND status = 'PROCESSING'
