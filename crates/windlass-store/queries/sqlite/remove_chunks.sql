-- Removes up to ?2 of a job's chunks. Lock: the writer's.
-- Index: the primary key.
DELETE FROM windlass_chunks
WHERE job_id = ?1
    AND number IN (SELECT number FROM windlass_chunks WHERE job_id = ?1 ORDER BY number LIMIT ?2)
