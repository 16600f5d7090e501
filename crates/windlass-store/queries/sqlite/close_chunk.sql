-- Counts one open chunk less, and begins the job if its first claim was not seen to.
-- Lock: the writer's. Index: the primary key.
UPDATE windlass_jobs
SET open_chunks = open_chunks - 1,
    status = CASE status WHEN 'QUEUED' THEN 'PROCESSING' ELSE status END,
    started_at = coalesce(started_at, CAST(unixepoch('subsec') * 1000 AS INTEGER))
WHERE id = ?1 AND open_chunks > 0
RETURNING id, status, true AS started, redrive, open_segments, open_chunks, chunks_total,
    items_total, grants, failures, closed, merge
