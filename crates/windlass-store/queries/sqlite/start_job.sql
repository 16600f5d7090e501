-- Starts a job of which something was leased.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_jobs
SET status = 'PROCESSING', started_at = coalesce(started_at, CAST(unixepoch('subsec') * 1000 AS INTEGER))
WHERE id = ?1 AND status = 'QUEUED'
