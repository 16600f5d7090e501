-- Ends a chunk whose lease is valid.
-- Lock: the chunk, after its job.
-- Index: the primary key.
UPDATE windlass_chunks
SET status = $12,
    cursor = $5,
    read = $6,
    processed = $7,
    skipped = $8,
    dead = $9,
    conflicts = $10,
    marked = coalesce($13, marked),
    error = coalesce($11, error),
    attempts = attempts + CASE $12 WHEN 'FAILED' THEN 1 ELSE 0 END,
    lease_until = NULL,
    finished_at = clock_timestamp()
WHERE job_id = $1 AND number = $2 AND epoch = $3 AND nonce = $4 AND status = 'PROCESSING'
