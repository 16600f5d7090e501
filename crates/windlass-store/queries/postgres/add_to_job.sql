-- Adds the segments, chunks and items of a page to the counters of a job, and starts the job if its
-- first lease could not.
-- Lock: the job (already locked).
-- Index: the primary key.
UPDATE windlass_jobs
SET open_segments = open_segments + $2,
    open_chunks = open_chunks + $3,
    chunks_total = chunks_total + $4,
    items_total = items_total + $5,
    status = CASE status WHEN 'QUEUED' THEN 'PROCESSING' ELSE status END,
    started_at = coalesce(started_at, clock_timestamp())
WHERE id = $1
RETURNING id, status, true AS started, redrive, open_segments, open_chunks, chunks_total,
    items_total, budget_multiplier, failures, closed, merge
