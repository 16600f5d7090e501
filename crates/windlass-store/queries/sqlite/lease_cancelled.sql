-- Leases a chunk of a cancelled job at a new epoch, to cancel it. ?4 is the previous value of its
-- `lost` flag.
-- Lock: the write transaction.
-- Index: the primary keys.
UPDATE windlass_chunks
SET status = 'PROCESSING',
    epoch = epoch + 1,
    nonce = random(),
    worker = ?3,
    lost = 0,
    ending = 1,
    deadline = CAST(unixepoch('subsec') * 1000 AS INTEGER)
        + (SELECT j.timeout_ms FROM windlass_jobs j WHERE j.id = ?1),
    lease_until = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?5
WHERE job_id = ?1 AND number = ?2
RETURNING job_id, number, epoch, nonce, key_set, items, attempts, ?4 AS lost, error
