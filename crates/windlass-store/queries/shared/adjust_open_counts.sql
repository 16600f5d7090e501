-- Adds to the counters of open segments and chunks; the numbers may be negative.
-- Lock: the job (already locked).
-- Index: the primary key.
UPDATE windlass_jobs
SET open_segments = open_segments + $2, open_chunks = open_chunks + $3
WHERE id = $1
