-- Decreases the counter of open chunks, and starts the job if its first lease could not.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_jobs
SET open_chunks = open_chunks - 1,
    status = CASE status WHEN 'QUEUED' THEN 'PROCESSING' ELSE status END,
    started_at = coalesce(started_at, CAST(unixepoch('subsec') * 1000 AS INTEGER))
WHERE id = ?1 AND open_chunks > 0
RETURNING id, status, true AS started, redrive, open_segments, open_chunks, chunks_total,
    items_total, budget_multiplier, failures, closed, merge
