-- Removes up to $2 of a job's chunks. Lock: the chunks; the job is closed or ended for good.
-- Index: the primary key.
DELETE FROM windlass_chunks
WHERE job_id = $1
    AND number IN (SELECT number FROM windlass_chunks WHERE job_id = $1 ORDER BY number LIMIT $2)
