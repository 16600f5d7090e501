-- Hands a chunk back with its progress.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_chunks
SET status = 'PENDING',
    cursor = ?5,
    read = ?6,
    processed = ?7,
    skipped = ?8,
    dead = ?9,
    conflicts = ?10,
    marked = coalesce(?14, marked),
    error = coalesce(?11, error),
    attempts = attempts + ?12,
    ending = false,
    available_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?13,
    lease_until = NULL
WHERE job_id = ?1 AND number = ?2 AND epoch = ?3 AND nonce = ?4 AND status = 'PROCESSING'
