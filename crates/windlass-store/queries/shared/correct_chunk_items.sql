-- Adds to the number of records of a chunk, which was estimated.
-- Lock: the chunk, after its job.
-- Index: the primary key.
UPDATE windlass_chunks SET items = items + $3 WHERE job_id = $1 AND number = $2
