-- Leases a segment at a new epoch.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_segments
SET status = 'PROCESSING', epoch = epoch + 1, nonce = random(), worker = ?3, lease_until = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?4
WHERE job_id = ?1 AND number = ?2
RETURNING job_id, number, epoch, nonce, state, key_range, attempts
