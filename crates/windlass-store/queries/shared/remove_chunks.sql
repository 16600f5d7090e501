-- Deletes up to $2 chunks of a job that is closed or has ended for good.
-- Lock: the chunks.
-- Index: the primary key.
DELETE FROM windlass_chunks
WHERE job_id = $1
    AND number IN (SELECT number FROM windlass_chunks WHERE job_id = $1 ORDER BY number LIMIT $2)
