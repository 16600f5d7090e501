-- Ends the chunks of a cancelled job that were never claimed: nothing of them needs a fence.
-- Lock: the writer's. Index: the primary key.
UPDATE windlass_chunks
SET status = 'CANCELLED', finished_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE job_id = ?1 AND status = 'PENDING' AND epoch = 0
