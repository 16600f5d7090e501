-- Decreases the counter of open chunks by $2, and starts the job if its first lease could not. It
-- runs before the chunk is changed, since the job is locked first. If the lease is lost, it is
-- rolled back.
-- It is sent together with BEGIN. `windlass.in_transaction` is set only if BEGIN succeeded: without a
-- transaction this statement changes nothing.
-- Lock: the job.
-- Index: the primary key.
UPDATE windlass_jobs
SET open_chunks = open_chunks - $2,
    status = CASE status WHEN 'QUEUED' THEN 'PROCESSING' ELSE status END,
    started_at = coalesce(started_at, clock_timestamp())
WHERE id = $1 AND open_chunks >= $2 AND current_setting('windlass.in_transaction', true) = 'on'
RETURNING id, status, true AS started, redrive, open_segments, open_chunks, chunks_total,
    items_total, budget_multiplier, failures, closed, merge
