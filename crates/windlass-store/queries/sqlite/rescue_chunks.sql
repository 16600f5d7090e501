-- Returns chunks whose lease has expired to PENDING, whatever the status of their job.
-- Lock: the write transaction.
-- Index: windlass_chunks_processing, one entry per chunk in progress.
UPDATE windlass_chunks
SET status = 'PENDING',
    lost = 1,
    losses = losses + 1,
    ending = 0,
    available_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
    lease_until = NULL
WHERE status = 'PROCESSING' AND lease_until < CAST(unixepoch('subsec') * 1000 AS INTEGER)
