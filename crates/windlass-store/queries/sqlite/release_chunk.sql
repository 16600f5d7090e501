-- Hands a chunk back with its progress.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_chunks
SET status = 'PENDING',
    cursor = ?4,
    read = ?5,
    processed = ?6,
    skipped = ?7,
    dead = ?8,
    conflicts = ?9,
    error = coalesce(?10, error),
    attempts = attempts + ?11,
    ending = false,
    available_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?12,
    lease_until = NULL
WHERE job_id = ?1 AND number = ?2 AND epoch = ?3 AND nonce = ?13 AND status = 'PROCESSING'
