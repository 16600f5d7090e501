-- Turns chunks whose lease ran out back into waiting ones, whatever their job's status.
-- Lock: the writer's. Index: windlass_chunks_processing, as many entries as chunks are at work.
UPDATE windlass_chunks
SET status = 'PENDING',
    lost = 1,
    losses = losses + 1,
    ending = 0,
    available_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
    lease_until = NULL
WHERE status = 'PROCESSING' AND lease_until < CAST(unixepoch('subsec') * 1000 AS INTEGER)
