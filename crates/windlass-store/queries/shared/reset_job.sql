-- Sets the counters of a job that is planned again.
-- Lock: the job (already locked).
-- Index: the primary key.
UPDATE windlass_jobs
SET open_segments = 1, open_chunks = 0, chunks_total = 0, items_total = 0
WHERE id = $1
