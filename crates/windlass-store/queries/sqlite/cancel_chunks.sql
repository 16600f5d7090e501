-- Ends the chunks of a cancelled job that were never leased. They need no fence.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_chunks
SET status = 'CANCELLED', finished_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE job_id = ?1 AND status = 'PENDING' AND epoch = 0
