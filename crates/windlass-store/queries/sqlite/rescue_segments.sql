-- Returns segments whose lease has expired to PENDING.
-- Lock: the write transaction.
-- Index: windlass_segments_processing.
UPDATE windlass_segments
SET status = 'PENDING',
    losses = losses + 1,
    available_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
    lease_until = NULL
WHERE status = 'PROCESSING' AND lease_until < CAST(unixepoch('subsec') * 1000 AS INTEGER)
