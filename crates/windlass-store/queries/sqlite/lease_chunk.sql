-- Leases a chunk at a new epoch. ?4 is the previous value of its `lost` flag.
-- The lease lasts at most ?5 milliseconds at first, since the chunk waits for a slot.
-- Lock: the write transaction.
-- Index: the primary keys.
UPDATE windlass_chunks
SET status = 'PROCESSING',
    epoch = epoch + 1,
    nonce = random(),
    worker = ?3,
    lost = 0,
    ending = 0,
    started_at = coalesce(started_at, CAST(unixepoch('subsec') * 1000 AS INTEGER)),
    deadline = CAST(unixepoch('subsec') * 1000 AS INTEGER)
        + (SELECT j.timeout_ms FROM windlass_jobs j WHERE j.id = ?1),
    lease_until = CAST(unixepoch('subsec') * 1000 AS INTEGER)
        + (SELECT min(j.lease_ms, j.timeout_ms, ?5) FROM windlass_jobs j WHERE j.id = ?1)
WHERE job_id = ?1 AND number = ?2
RETURNING job_id, number, epoch, nonce, key_set, items, attempts, ?4 AS lost, error
